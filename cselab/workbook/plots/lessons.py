"""Figures that explain a method: a batch as a matrix, points that move, gradients of losses."""

import itertools
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
import torch
from jaxtyping import Float
from plotly.subplots import make_subplots
from torch import Tensor

from cselab.losses import modulus_surface
from cselab.workbook.plots.figures import LOW_IS_GOOD
from cselab.workbook.plots.theme import PALETTE


def batch_cosines(
    batches: Mapping[str, tuple[Float[Tensor, "N d"], Float[Tensor, "N d"]]],
    duplicates: Sequence[tuple[int, int]] = (),
    title: str = "",
) -> go.Figure:
    """The cosines that InfoNCE reads of one batch, (N, N) each.

    Row i's first view with column j's second. Positives are the diagonal.

    Args:
        batches: Two views, (N, d) each, by the name of a moment, such as "before" and "after".
        duplicates: Pairs (i, j) of one sentence, marked.

    Examples:
        >>> import torch
        >>> from cselab.workbook.plots import batch_cosines
        >>> [cells] = batch_cosines({"before": (torch.eye(2), 3 * torch.eye(2))}).data
        >>> cells.z
        ([1.0, 0.0], [0.0, 1.0])
    """
    figure = make_subplots(cols=len(batches), subplot_titles=list(batches), horizontal_spacing=0.09)
    for column, (a, b) in enumerate(batches.values(), 1):
        unit = (torch.nn.functional.normalize(x.float(), dim=1) for x in (a, b))
        left, right = unit
        where = {"row": 1, "col": column}
        cosines = (left @ right.T).cpu()
        figure.add_heatmap(z=cosines.tolist(), coloraxis="coloraxis", **where)
        if duplicates:
            i, j = zip(*duplicates, strict=True)
            ring = dict(symbol="circle-open", size=9, color=PALETTE[1], line=dict(width=2))
            once = column == 1
            look = dict(mode="markers", marker=ring, name="the same sentence", showlegend=once)
            figure.add_scatter(x=j, y=i, **look, **where)
        axis = "x" if column == 1 else f"x{column}"
        square = dict(autorange="reversed", scaleanchor=axis, constrain="domain")
        figure.update_yaxes(**square, **where)
        figure.update_xaxes(constrain="domain", title="sentence j, second view", **where)
    figure.update_yaxes(title="sentence i", col=1)
    scale = dict(colorscale="Cividis", cmin=-1, cmax=1, colorbar=dict(title="cosine"))
    return figure.update_layout(title=title, height=470, coloraxis=scale)


def paths(
    histories: Mapping[str, Sequence[Mapping[str, float | int]]], title: str = ""
) -> go.Figure:
    """Path of each training (`FitResult.history` by name) over uniformity and alignment.

    Both are of a fixed batch, from the start (open mark) to the end. Lower is better on both axes.
    Wang and Isola 2020, https://arxiv.org/abs/2005.10242.

    Examples:
        >>> from cselab.workbook.plots import paths
        >>> history = [
        ...     {"step": 0, "uniformity": -1.0, "alignment": 0.2},
        ...     {"step": 5, "uniformity": -2.0, "alignment": 0.3},
        ... ]
        >>> [line] = paths({"simcse": history}).data
        >>> line.x, line.marker.symbol
        ((-1.0, -2.0), ('circle-open', 'circle'))
    """
    figure = go.Figure(layout=dict(title=title, **LOW_IS_GOOD))
    for colour, (name, history) in zip(itertools.cycle(PALETTE), histories.items(), strict=False):
        steps = [row["step"] for row in history]
        symbols = ["circle-open", *["circle"] * (len(steps) - 1)]
        figure.add_scatter(
            x=[row["uniformity"] for row in history],
            y=[row["alignment"] for row in history],
            mode="lines+markers",
            name=name,
            line=dict(color=colour),
            marker=dict(size=9, symbol=symbols),
            customdata=steps,
            hovertemplate="step %{customdata}: %{x:.2f}, %{y:.3f}",
        )
    return figure


def moving_points(
    snapshots: Mapping[str, Float[Tensor, "N d"]], groups: Sequence[str], title: str = ""
) -> go.Figure:
    """Sentences in the plane of two principal components, a panel a moment, coloured by group.

    Vectors are scaled to length 1, and each moment is centred; the components are those of all
    moments together, so that the plane and its scale stay the same.

    Args:
        snapshots: Vectors, (N, d), by the name of a moment, such as "before" and "after".
        groups: One name a sentence; at most seven different.

    Examples:
        >>> import torch
        >>> from cselab.workbook.plots import moving_points
        >>> moments = {"before": torch.eye(4), "after": torch.eye(4).roll(1, dims=0)}
        >>> figure = moving_points(moments, ["dogs", "dogs", "cats", "cats"])
        >>> [(points.name, points.xaxis) for points in figure.data]
        [('dogs', 'x'), ('cats', 'x'), ('dogs', 'x2'), ('cats', 'x2')]
    """
    units = [torch.nn.functional.normalize(x.float().cpu(), dim=1) for x in snapshots.values()]
    units = [unit - unit.mean(0) for unit in units]
    _, _, axes = torch.pca_lowrank(torch.cat(units), q=2, center=False)
    places = [unit @ axes for unit in units]
    figure = make_subplots(
        cols=len(places), subplot_titles=list(snapshots), shared_yaxes=True, horizontal_spacing=0.05
    )
    for column, place in enumerate(places, 1):
        for colour, name in zip(itertools.cycle(PALETTE), dict.fromkeys(groups), strict=False):
            x, y = place[[i for i, group in enumerate(groups) if group == name]].T.tolist()
            look = dict(mode="markers", marker=dict(color=colour, size=7, opacity=0.8))
            once = dict(legendgroup=name, showlegend=column == 1)
            figure.add_scatter(x=x, y=y, name=name, **look, **once, row=1, col=column)
    most = 1.1 * torch.cat(places).abs().max().item()
    figure.update_xaxes(range=[-most, most], title="first component")
    figure.update_yaxes(range=[-most, most])
    figure.update_yaxes(title="second component", col=1)
    return figure.update_layout(title=title, height=480, legend=dict(y=-0.2, yanchor="top"))


def negative_shares(temperatures: Sequence[float], cosines: Sequence[float]) -> go.Figure:
    """The share of each negative in InfoNCE's gradient, over its cosine, at several temperatures.

    The gradient on the cosine of negative j is `exp(cos_j / τ) / Z / τ`: its share among the
    negatives is a softmax of their cosines.

    Examples:
        >>> from cselab.workbook.plots import negative_shares
        >>> for line in negative_shares([0.05, 1.0], [0.2, 0.7]).data:
        ...     print(line.name, [round(share, 1) for share in line.y], "%")
        τ = 0.05 [0.0, 100.0] %
        τ = 1 [37.8, 62.2] %
    """
    values = torch.tensor(list(cosines))
    figure = go.Figure(
        layout=dict(xaxis_title="cosine of a negative", yaxis_title="share of the gradient (%)")
    )
    for temperature in temperatures:
        share = 100 * torch.softmax(values / temperature, dim=0)
        figure.add_scatter(
            x=values.tolist(), y=share.tolist(), name=f"τ = {temperature:g}", mode="lines+markers"
        )
    return figure


def modulus_field(size: int = 15) -> go.Figure:
    """Where ICTM (paper's form, both factors of one pair) pulls a pair.

    The contours of `-log(t) * ratio(k, t)` over the norms' ratio k and the cosine t, and downhill
    arrows of equal length. TNCSE, https://arxiv.org/abs/2503.12739.

    Examples:
        >>> from cselab.workbook.plots import modulus_field
        >>> contours, lines, heads = modulus_field(size=5).data
        >>> len(heads.x)
        25
    """

    def value(k: Tensor, t: Tensor) -> Tensor:
        return -t.log() * modulus_surface(k, t)

    k, t = torch.linspace(0.25, 4, 90), torch.linspace(0.06, 0.995, 90)
    figure = go.Figure(
        go.Contour(
            x=k,
            y=t,
            z=value(k[None, :], t[:, None]),
            colorscale="Cividis",
            colorbar=dict(title="−log t · ℓ"),
            ncontours=18,
        )
    )
    k, t = torch.linspace(0.4, 3.8, size), torch.linspace(0.12, 0.97, size)
    k, t = (x.flatten().requires_grad_() for x in torch.meshgrid(k, t, indexing="xy"))
    down = torch.autograd.grad(-value(k, t).sum(), (k, t))
    # on the drawn axes, where k spans four times what t does
    length = ((down[0] / 3.75) ** 2 + (down[1] / 0.935) ** 2).sqrt()
    ends = [(x + 0.045 * step / length).tolist() for x, step in zip((k, t), down, strict=True)]
    angle = torch.rad2deg(torch.atan2(down[0] / 3.75, down[1] / 0.935)).tolist()
    lines: dict[str, list[float | None]] = {axis: [] for axis in "xy"}
    for axis, start, end in zip("xy", (k, t), ends, strict=True):
        for a, b in zip(start.tolist(), end, strict=True):
            lines[axis] += [a, b, None]
    figure.add_scatter(**lines, mode="lines", line=dict(color="white", width=1.5), showlegend=False)
    head = dict(symbol="triangle-up", size=8, angle=angle, color="white")
    figure.add_scatter(x=ends[0], y=ends[1], mode="markers", marker=head, showlegend=False)
    figure.update_xaxes(title="k, ratio of the norms", range=[0.25, 4])
    figure.update_yaxes(title="t, cosine", range=[0.06, 0.995])
    return figure.update_layout(height=480)
