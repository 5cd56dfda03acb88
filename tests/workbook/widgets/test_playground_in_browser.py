"""The loss playground's points in a real browser, without a kernel and with one."""

import pytest

from cselab.methods.terms import term
from cselab.workbook.headless.page import write_widget
from cselab.workbook.widgets.descent import as_lists

pytestmark = pytest.mark.slow
POINTS = """root => [...root.querySelectorAll('[data-point]')].map(mark => {
  const box = mark.firstChild.getBoundingClientRect();
  return [mark.dataset.point, box.x + box.width / 2, box.y + box.height / 2];
})"""


@pytest.fixture
def play(visit, tmp_path):
    """`play(playground, width)`: the page and the widget's root. No message is allowed."""
    heard = []

    def go(playground, width=1280):
        page, root, said = visit(write_widget(tmp_path / "p.html", "T", playground.saved()), width)
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


RAYS = """root => [...root.querySelectorAll('[data-layer=rays] path')].flatMap(ray =>
  ray.getAttribute('d').split('M').slice(1).map(one => one.split('L').map(at =>
    at.split(' ').map(Number))))"""
MARKS = """root => [...root.querySelectorAll('[data-point]')].map(mark =>
  mark.getAttribute('transform').match(/[-.0-9]+/g).map(Number))"""


def test_a_ray_leads_from_the_origin_to_each_point(play, playground):
    """Prevents rays that stay behind when the points move, of one tower alone, or without end."""
    page, root = play(playground)
    root.get_by_role("button", name="one step").click()
    page.wait_for_timeout(200)
    rays, marks = root.evaluate(RAYS), root.evaluate(MARKS)
    assert len(rays) == len(marks) == 20
    assert len({tuple(start) for start, _ in rays}) == 1
    ends = sorted(end for _, end in rays)
    assert ends == [pytest.approx(mark, abs=0.06) for mark in sorted(marks)]
    root.get_by_label("rays", exact=False).first.uncheck()
    page.wait_for_timeout(100)
    assert root.evaluate(RAYS) == []


def test_a_term_without_a_port_is_greyed_with_the_reason(play, own_playground):
    """Prevents a page whose slider does nothing, and one whose other terms do not move either."""

    @term
    def own(self, outputs, step):
        """Views near, cubed."""
        return (outputs.sentence[0] - outputs.sentence[1]).abs().pow(3).sum(-1).mean()

    page, root = play(own_playground(["own", "nce"], own=own), 400)
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


@pytest.fixture
def desk(make_desk, playground):
    return make_desk(playground)


def press(desk, name, view="a", times=1):
    for _ in range(times):
        desk.page.locator(f"#{view}").get_by_role("button", name=name).first.click()
        desk.page.wait_for_timeout(80)


def step_of(desk, view="a"):
    return step_and_loss(desk.page.locator(f"#{view}"))[0]


def is_shared(desk):
    """Whether Python has all steps and the points that the views have."""
    desk.page.wait_for_timeout(300)
    points = desk.page.evaluate("desk.model.get('coordinates')")
    steps = [row["step"] for row in desk.widget.history]
    return as_lists(desk.widget.points) == points and steps == list(range(len(steps)))


def test_a_busy_kernel_does_not_undo_what_was_played_meanwhile(desk):
    """Prevents points that jump back when "Run all" is at its end, and steps that Python lacks
    since a busy kernel gets the newest message only."""
    desk.page.evaluate("desk.busy = true")
    desk.open("b")
    press(desk, "play", "b")
    desk.page.wait_for_timeout(1500)
    press(desk, "pause", "b")
    press(desk, "one step", "b", times=3)
    step = step_of(desk, "b")
    assert step > 5
    desk.page.evaluate("desk.release()")
    assert is_shared(desk)
    assert step_of(desk, "b") == step_of(desk) == step == len(desk.widget.history) - 1
    press(desk, "one step", "b")
    assert is_shared(desk)
    assert step_of(desk, "b") == len(desk.widget.history) - 1 == step + 1


def test_a_descent_in_python_counts_more_than_one_that_has_not_heard_of_it(desk):
    """Prevents points of the browser with the history of Python."""
    press(desk, "one step", times=2)
    desk.page.evaluate("desk.busy = true")
    press(desk, "one step", times=3)
    desk.python(lambda: desk.widget.descend(10))
    desk.page.evaluate("desk.release()")
    assert is_shared(desk)
    assert step_of(desk) == 12
    press(desk, "one step")
    assert is_shared(desk)
    assert step_of(desk) == 13


def test_two_views_of_a_playground_show_the_same_steps(desk):
    """Prevents a history 100, 101, 201: a view that goes on from points of before."""
    press(desk, "one step", times=4)
    desk.open("b")
    assert step_of(desk, "b") == 4
    press(desk, "one step", "b")
    assert step_of(desk, "a") == step_of(desk, "b") == 5
    press(desk, "one step", "a", times=2)
    assert step_of(desk, "a") == step_of(desk, "b") == 7
    press(desk, "hard negative", "b")
    assert step_of(desk, "a") == step_of(desk, "b") == 0
    press(desk, "play", "a")
    desk.page.wait_for_timeout(700)
    press(desk, "one step", "b")
    assert desk.page.locator("#a").get_by_role("button", name="play").is_visible()
    assert is_shared(desk)
    assert step_of(desk, "a") == step_of(desk, "b") == len(desk.widget.history) - 1 > 1


def drag(page, root, name, right, down):
    """Drag a point, and give where all are afterwards."""
    _, x, y = next(one for one in root.evaluate(POINTS) if one[0] == name)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + right, y + down, steps=3)
    page.mouse.up()
    page.wait_for_timeout(200)
    return root.evaluate(POINTS)


def test_a_drag_before_the_first_step_is_where_it_starts(desk):
    """Prevents a reset that throws the drag away, and a figure whose "before" is without it."""
    root = desk.page.locator("#a .cselab")
    dragged = drag(desk.page, root, "0,0,1", 12, 9)
    press(desk, "one step", times=3)
    press(desk, "reset")
    assert moved(dragged, root.evaluate(POINTS)) == []
    press(desk, "one step", times=2)
    assert is_shared(desk)
    start = as_lists(desk.widget.descent.trail[0])["tower I"][0]
    before = desk.widget.past["start"]["tower I"][0]
    assert start[1] != before[1]
    assert start[0] == before[0]


def test_a_kernel_that_cannot_compute_a_term_is_quoted(desk):
    """Prevents a view that waits for ever, and one that shows another view's error."""
    desk.widget.descent.slopes = lambda *_: 1 / 0
    desk.python(lambda: setattr(desk.widget, "terms", {"whitened": 1}))
    note = desk.page.get_by_text("The kernel could not compute a term: ZeroDivisionError")
    note.wait_for(timeout=60_000)
    press(desk, "play")
    desk.page.locator("#a").get_by_role("button", name="play").wait_for(timeout=60_000)
    assert note.is_visible()


def test_a_finger_scrolls_the_page_from_the_plane(browser, playground, tmp_path):
    """Prevents a phone on which the page cannot be scrolled beyond the picture; a point, and the
    picture in space, follow the finger."""
    path = write_widget(tmp_path / "p.html", "T", playground.saved())
    size = {"width": 400, "height": 700}
    page = browser.new_context(has_touch=True, viewport=size).new_page()
    page.goto(path.as_uri())
    picture = page.locator(".cselab svg[role=group]").first
    picture.wait_for()
    picture.scroll_into_view_if_needed()
    page.wait_for_timeout(200)
    touch = page.context.new_cdp_session(page)

    def scrolled(x, y):
        before = page.evaluate("scrollY")
        for name, away in [("touchStart", 0), *(("touchMove", n) for n in range(10, 121, 10))]:
            at = {"type": name, "touchPoints": [{"x": x, "y": y - away}]}
            touch.send("Input.dispatchTouchEvent", at)
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        page.wait_for_timeout(1000)  # it runs on after a flick
        return page.evaluate("scrollY") - before

    box = picture.bounding_box()
    assert scrolled(box["x"] + 60, box["y"] + 200) > 60
    before = picture.evaluate(POINTS)
    points = [(x, y) for _, x, y in before if 150 < y < 650]
    assert scrolled(*points[0]) == 0
    assert len(moved(before, picture.evaluate(POINTS))) == 1
    page.get_by_label("points in").select_option("space")
    page.wait_for_timeout(200)
    box = picture.bounding_box()
    assert scrolled(box["x"] + 20, max(box["y"], 150) + 30) == 0
    page.context.close()
