"""The loss playground's points in a real browser, in a page without a kernel."""

import pytest
from conftest import write_widget_page

from cselab.methods.simcse import SimCSE
from cselab.methods.terms import term
from cselab.widgets import LossPlayground

POINTS = """root => [...root.querySelectorAll('[data-point]')].map(mark => {
  const box = mark.firstChild.getBoundingClientRect();
  return [mark.dataset.point, box.x + box.width / 2, box.y + box.height / 2];
})"""


@pytest.fixture
def play(visit, tmp_path):
    """`play(playground, width)`: the page and the widget's root. No message is allowed."""
    heard = []

    def go(playground, width=1280):
        page, root, said = visit(write_widget_page(tmp_path / "p", playground), width)
        heard.append(said)
        return page, root

    yield go
    assert not any(heard)


def moved(before, after):
    return [old[0] for old, new in zip(before, after, strict=True) if old != new]


def step_and_loss(root):
    words = root.get_by_text("step ").filter(has_text=", loss").first.inner_text().split()
    return int(words[1].strip(",")), float(words[3].strip(",").replace("−", "-"))


def test_a_point_is_moved_alone_by_pointer_and_by_keys(play, playground):
    """Prevents points that move with another one, or that a keyboard cannot reach."""
    page, root = play(playground)
    before = root.evaluate(POINTS)
    name, x, y = next(one for one in before if one[0] == "0,0,4")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 9, y + 7, steps=3)
    page.mouse.up()
    page.wait_for_timeout(100)
    after = root.evaluate(POINTS)
    assert moved(before, after) == [name]
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(100)
    again = root.evaluate(POINTS)
    assert moved(after, again) == [name]
    page.keyboard.press("+")
    page.wait_for_timeout(100)
    assert moved(again, root.evaluate(POINTS)) == [name]


def test_playing_lowers_the_loss_of_both_and_pauses(play, playground):
    """Prevents a play button that moves nothing or does not stop, and a second loss on points of
    its own."""
    page, root = play(playground)
    root.get_by_label("compare two losses").check()
    page.wait_for_timeout(100)
    start = root.evaluate(POINTS)
    half = len(start) // 2
    assert [one[0] for one in start[:half]] == [one[0] for one in start[half:]]
    step, loss = step_and_loss(root)
    root.get_by_role("button", name="play").click()
    page.wait_for_timeout(1500)
    root.get_by_role("button", name="pause").click()
    page.wait_for_timeout(200)
    later, lower = step_and_loss(root)
    assert later > step
    assert lower < loss
    steps = root.get_by_text("step ").filter(has_text=", loss").all_inner_texts()
    assert len({words.split(",")[0] for words in steps}) == 1
    root.get_by_role("button", name="reset").click()
    page.wait_for_timeout(200)
    assert root.evaluate(POINTS) == start


def test_the_range_follows_the_points(play, playground):
    """Prevents points in a third of a panel: the range is at most 1.5 times the farthest."""
    page, root = play(playground)
    frame = root.locator("svg[role=group]").first
    for preset in ("collapse", "hard negative", "unequal lengths", "random"):
        root.get_by_role("button", name=preset).click()
        page.wait_for_timeout(200)
        box = frame.bounding_box()
        circle = root.locator("[data-layer=guide] circle").first.bounding_box()
        middle = (circle["x"] + circle["width"] / 2, circle["y"] + circle["height"] / 2)
        far = max(max(abs(x - middle[0]), abs(y - middle[1])) for _, x, y in root.evaluate(POINTS))
        reach = min(box["x"] + box["width"] - middle[0], middle[1] - box["y"])
        assert far < reach < 1.55 * far, preset


def test_a_long_step_is_explained_with_one_that_would_do(play, playground):
    """Prevents points that fly away without a word."""
    playground.shape = "sphere"
    playground.descend(60)
    playground.rate = 5.0
    _, root = play(playground)
    root.get_by_role("button", name="play").click()
    hint = root.get_by_text("The step is too long for this loss")
    hint.wait_for(timeout=20_000)
    assert root.get_by_role("button", name="play").is_visible()
    root.get_by_role("button", name="use ").click()
    assert not hint.is_visible()


def test_a_term_without_a_port_is_greyed_with_the_reason(play, small_pretrained):
    """Prevents a page whose slider does nothing, and one whose other terms do not move either."""

    class Mine(SimCSE):
        class Config(SimCSE.Config):
            pass

        @term
        def own(self, outputs, step):
            """Views near, cubed."""
            return (outputs.sentence[0] - outputs.sentence[1]).abs().pow(3).sum(-1).mean()

    method = Mine.build(Mine.Config(terms=["own", "nce"]), [small_pretrained])
    page, root = play(LossPlayground(method), 400)
    assert root.get_by_label("weight of own", exact=True).is_disabled()
    root.get_by_role("button", name="what own is").first.click()
    shown = root.locator("[id^=cselab-term]").first
    assert shown.is_visible()
    assert "Views near, cubed." in shown.inner_text()
    assert "it needs a kernel" in shown.inner_text()
    before = root.evaluate(POINTS)
    root.get_by_role("button", name="one step").click()
    page.wait_for_timeout(200)
    assert moved(before, root.evaluate(POINTS))
