// Messages of a view of the playground: to the kernel, and to other views of the same widget.

// Asks the kernel for terms that the browser does not know: (names, points, step) => promise.
//
// view: this view's name, as all views of a widget get all messages. showNote(words).
export function termsOfKernel({ model, spaces, view, showNote }) {
  const waiting = new Map();
  let last = 0;
  model.on("msg:custom", (message) => {
    const id = message.failed?.id ?? message.id;
    const request = waiting.get(id);
    if (!request) return;
    waiting.delete(id);
    clearTimeout(request.late);
    if (message.failed) showNote(`The kernel could not compute a term: ${message.error}`);
    else if (request.isAnnounced) showNote("");
    request.resolve(numbersOf(message.terms ?? {}));
  });
  return (names, points, step) =>
    new Promise((resolve) => {
      const request = { resolve, isAnnounced: false };
      request.late = setTimeout(() => {
        request.isAnnounced = true;
        showNote(`Waiting for the kernel, which computes ${names.join(", ")}.`);
      }, 1500);
      const id = `${view} ${(last += 1)}`;
      waiting.set(id, request);
      model.send({ do: "terms", id, terms: names, step, points: bySpace(spaces, points) });
    });
}

// Keeps the runs, Python and other views of the same widget at the same points.
//
// runs: of the first and of the second loss. stop(): stops playing, and sends nothing.
// renew(): evaluates the runs and draws them. Gives { sendNews(), sinceSent(): milliseconds }.
export function sharing({ model, spaces, view, runs: [main, other], stop, renew }) {
  const asList = (dict) => numbersOf(spaces.map((space) => dict[space]));
  let sentAt = 0; // milliseconds
  let count = 0;
  let last = ""; // the newest message of any view
  let version = 0; // of Python's points that the present ones go on from

  // Send the points, and all rows that Python may not have: a busy kernel gets only the newest
  // message.
  function sendNews() {
    sentAt = performance.now();
    if (!model.get("kernel") || !main.rows.length) return;
    if (model.get("acknowledged") === last) main.acknowledged = main.sent;
    const rows = main.rows.slice(main.acknowledged);
    last = `${view} ${(count += 1)}`;
    const news = { message: last, version, from: rows[0]?.step ?? main.step + 1, rows };
    if (main.acknowledged === 0) news.start = bySpace(spaces, main.start);
    main.sent = main.rows.length;
    model.set("coordinates", bySpace(spaces, main.points));
    model.set("news", news);
    model.save_changes();
  }

  function adopt(past) {
    version = past.version;
    const [points, start] = [asList(past.points), asList(past.start)];
    main.begin(points, start, past.rows, past.trail.map(asList));
    main.acknowledged = main.sent = past.rows.length;
    other.begin(points, start, [{ step: main.step }]);
    return renew();
  }

  // Another view has moved the points.
  function follow() {
    const news = model.get("news");
    if (news.message === last || news.version !== version) return;
    last = news.message;
    stop();
    const points = asList(model.get("coordinates"));
    if (news.start) main.begin(points, asList(news.start), news.rows);
    else if (!main.join(points, news.from, news.rows)) return ask();
    main.sent = main.rows.length;
    other.begin(points, main.start, [{ step: main.step }]);
    renew();
  }

  // Ask Python for all steps. A busy kernel answers when it is idle again: if the points have moved
  // meanwhile, the answer is left out.
  let asked = null;
  function ask() {
    asked = main.points;
    model.send({ do: "past", view });
  }

  model.on("msg:custom", (message) => {
    if (message.view === view && main.points === asked) adopt(message.past);
  });
  model.on("change:past", () => {
    stop();
    adopt(model.get("past"));
  });
  model.on("change:news", follow);
  adopt(model.get("past"));
  if (model.get("kernel")) ask();
  return { sendNews, sinceSent: () => performance.now() - sentAt };
}

const bySpace = (spaces, points) =>
  Object.fromEntries(spaces.map((space, s) => [space, points[s]]));

// Numbers as Python sends them: JSON has null for NaN.
function numbersOf(value) {
  if (value === null) return NaN;
  if (Array.isArray(value)) return value.map(numbersOf);
  if (typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, numbersOf(one)]));
}
