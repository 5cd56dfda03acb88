// What is wrong with a widget's drawing: in words, one line each.
(root) => {
  const problems = [];
  const box = (element) => element.getBoundingClientRect();
  const outer = box(root);
  const named = (element) =>
    `${element.tagName} ${element.className.baseVal ?? element.className} "${element.textContent.slice(0, 40)}"`;
  const seen = (element) => box(element).width > 0 && box(element).height > 0;
  const inScroller = (element) => element.closest(".scroll, .numbers, .tip");
  for (const element of root.querySelectorAll("*")) {
    if (!seen(element) || inScroller(element)) continue;
    const { left, right } = box(element);
    if (left < outer.left - 1 || right > outer.right + 1)
      problems.push(`outside: ${named(element)}`);
  }
  for (const text of root.querySelectorAll("svg text")) {
    if (!seen(text)) continue;
    const frame = box(text.ownerSVGElement);
    const { left, right, top, bottom } = box(text);
    const cut =
      left < frame.left - 2 ||
      right > frame.right + 2 ||
      top < frame.top - 2 ||
      bottom > frame.bottom + 2;
    if (cut) problems.push(`cut off: ${named(text)}`);
    if (parseFloat(getComputedStyle(text).fontSize) < 11)
      problems.push(`too small: ${named(text)}`);
  }
  const level = (text) => !(text.getAttribute("transform") ?? "").includes("rotate");
  for (const svg of root.querySelectorAll("svg")) {
    const texts = [...svg.querySelectorAll("text")].filter((text) => seen(text) && level(text));
    texts.forEach((one, n) => {
      for (const other of texts.slice(n + 1)) {
        const [a, b] = [box(one), box(other)];
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 1 && down > 3)
          problems.push(`on each other: ${named(one)} and ${named(other)}`);
      }
    });
  }
  const blocks = [
    ...root.querySelectorAll("h4, .legend, .note, .bar, svg[role=img], .chips"),
  ].filter((block) => seen(block) && !inScroller(block));
  blocks.forEach((one, n) => {
    for (const other of blocks.slice(n + 1)) {
      if (one.contains(other) || other.contains(one)) continue;
      const [a, b] = [box(one), box(other)];
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 1 && down > 1) problems.push(`overlap: ${named(one)} and ${named(other)}`);
    }
  });
  const light = (colour) => {
    const [r, g, b] = colour
      .match(/[\d.]+/g)
      .slice(0, 3)
      .map((x) => {
        const part = x / 255;
        return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
      });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = light(getComputedStyle(root).backgroundColor);
  for (const element of root.querySelectorAll(
    "label > span, .note, h4, svg text, .legend, summary",
  )) {
    const style = getComputedStyle(element);
    const ink = light(element.tagName === "text" ? style.fill : style.color);
    const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (contrast < 4.5) problems.push(`contrast ${contrast.toFixed(1)}: ${named(element)}`);
  }
  for (const control of root.querySelectorAll("select, input, button, [tabindex='0']")) {
    const name =
      control.getAttribute("aria-label") ?? control.labels?.[0]?.textContent ?? control.textContent;
    if (!name.trim()) problems.push(`no name: ${control.outerHTML.slice(0, 80)}`);
  }
  return [...new Set(problems)];
}
