"""Figures that explain a method: a batch as a matrix, points that move, gradients of losses."""

import itertools
from collections.abc import Callable, Mapping, Sequence

import plotly.graph_objects as go
import torch
from jaxtyping import Float
from plotly.subplots import make_subplots
from torch import Tensor

from cselab.losses import modulus_ratio
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


def modulus_paths(
    starts: Sequence[tuple[float, float]] = ((2.0, 60.0), (1.5, 30.0), (0.4, 75.0)),
) -> go.Figure:
    """Where descent on a modulus term moves q, a vector of the plane; p = (1, 0) stays.

    On the left the ratio alone (TNCSE, https://arxiv.org/abs/2503.12739), on the right as ICTM
    weighs it, `-log cos(p, q) * ratio(p, q)`.

    Args:
        starts: Length of q, and its angle to p in degrees.

    Examples:
        >>> from cselab.workbook.plots import modulus_paths
        >>> alone, weighed = (line for line in modulus_paths([(2, 60)]).data if line.marker.size)
        >>> [round(abs(complex(line.x[-1], line.y[-1])), 1) for line in (alone, weighed)]
        [1.0, 1.7]
    """
    terms = {"ℓ_TN alone": _ratio, "ICTM: −log t · ℓ_TN": _weighed_ratio}
    figure = make_subplots(cols=2, subplot_titles=list(terms), horizontal_spacing=0.1)
    length, angle = torch.tensor(starts).T
    begin = length[:, None] * torch.stack([angle.deg2rad().cos(), angle.deg2rad().sin()], dim=1)
    names = [f"q, {k:g} times as long, at {degrees:g}°" for k, degrees in starts]
    for column, term in enumerate(terms.values(), 1):
        where = dict(row=1, col=column, showlegend=column == 1)
        line = dict(color="#888", width=6)
        figure.add_scatter(x=[0, 1], y=[0, 0], name="p", mode="lines", line=line, **where)
        for i, (name, path) in enumerate(zip(names, _descent(term, begin), strict=True)):
            x, y = path.T.tolist()
            line = dict(color=PALETTE[i % len(PALETTE)], width=3)
            ends = dict(size=[9, *[0] * (len(x) - 2), 11], opacity=1, line_width=0)
            figure.add_scatter(
                x=x, y=y, name=name, mode="lines+markers", line=line, marker=ends, **where
            )
            ray = dict(x=[0, x[0]], y=[0, y[0]], line=line | dict(dash="dot", width=1))
            figure.add_scatter(**ray, mode="lines", **where | dict(showlegend=False))
        figure.update_yaxes(scaleanchor="x" if column == 1 else "x2", row=1, col=column)
    legend = dict(orientation="h", y=-0.15, yanchor="top")
    return figure.update_layout(legend=legend, margin=dict(t=50, b=110), height=400)


def _ratio(p: Tensor, q: Tensor) -> Tensor:
    return modulus_ratio(p, q).sum()


def _weighed_ratio(p: Tensor, q: Tensor) -> Tensor:
    return -(torch.cosine_similarity(p, q).log() * modulus_ratio(p, q)).sum()


def _descent(
    term: Callable[[Tensor, Tensor], Tensor], begin: Float[Tensor, "n 2"]
) -> Float[Tensor, "n 51 2"]:
    """Positions of q on its way down a term, from `begin` on, first at short intervals."""
    p, q = torch.tensor([[1.0, 0.0]]).expand_as(begin), begin
    marks, path = {max(1, round(0.4 * i**2)) for i in range(1, 51)}, [q]
    for step in range(1, 1001):
        q = q.requires_grad_()
        (gradient,) = torch.autograd.grad(term(p, q), q)
        q = (q - 0.04 * gradient).detach()
        if step in marks:
            path.append(q)
    return torch.stack(path, dim=1)
