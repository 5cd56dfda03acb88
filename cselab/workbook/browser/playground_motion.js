// The playground's motion: play, pause and single steps of gradient descent.
import { button, set, short } from "./kit.js";

const FRAME = { local: 24, remote: 80 }; // milliseconds that the steps of a frame may take
const MOST_DUE = 60; // steps that a frame may make up for

// runs(): those that move. draw: { points(), charts(), all() }. sendNews(): to Python; sinceSent():
// milliseconds. showNote(words, button). showPlaying(isPlaying): on the play button.
export function motion({ model, runs, draw, sendNews, sinceSent, showNote, showPlaying }) {
  let [playing, busy] = [false, false];
  let [due, before, drawn, handle] = [0, 0, 0, 0];

  // One frame is asked for at any time, whoever asks.
  function askFrame() {
    cancelAnimationFrame(handle);
    handle = requestAnimationFrame(frame);
  }

  async function frame(now) {
    if (!playing) return;
    due = Math.min(due + (Math.max(0, now - before) / 1000) * model.get("speed"), MOST_DUE);
    before = now;
    if (!busy) await takeSteps(Math.floor(due), now);
    if (playing) askFrame();
  }

  async function takeSteps(count, since) {
    busy = true;
    const isRemote = runs().some((run) => run.active().some((name) => !run.isLocal(name)));
    const limit = isRemote ? FRAME.remote : FRAME.local;
    for (let n = 0; n < count && playing; n++) {
      due -= 1;
      if (!(await takeStep())) break;
      if (performance.now() - since > limit) {
        due = Math.min(due, 1); // as fast as it can be shown
        break;
      }
    }
    busy = false;
    if (count === 0) return;
    draw.points();
    if (performance.now() - drawn > 200) {
      draw.charts();
      drawn = performance.now();
    }
    if (playing && sinceSent() > 450) sendNews();
  }

  // One step of each run. Gives whether all went well.
  async function takeStep() {
    const rate = model.get("rate");
    for (const run of runs()) {
      const wrong = await run.descend(rate);
      if (!wrong) continue;
      if (wrong === "unknown")
        pause(); // the kernel's answer says why
      else await explain(run, wrong, rate);
      return false;
    }
    return true;
  }

  async function explain(run, wrong, rate) {
    pause();
    await run.refresh();
    const better = await run.suggestion(rate);
    const what = {
      infinite: "The loss is not finite",
      rising: "The loss rises by more than half within 20 steps",
    }[wrong];
    const advice = better
      ? `The step is too long for this loss; about ${short(better)} would do.`
      : "No shorter step lowers this loss from here.";
    const take = () => (set(model, "rate", better), showNote(""));
    showNote(
      `${what}: the points are back where they were before. ${advice} `,
      better && button(`use ${short(better)}`, "set the step size", take),
    );
    draw.all();
    sendNews();
  }

  function play() {
    playing = true;
    before = performance.now();
    due = 1;
    showNote("");
    showPlaying(playing);
    askFrame();
  }

  function stop() {
    if (!playing) return;
    playing = false;
    showPlaying(playing);
    draw.all();
  }

  function pause() {
    if (!playing) return;
    stop();
    sendNews();
  }

  async function step() {
    pause();
    showNote("");
    if (busy) return;
    busy = true;
    await takeStep();
    busy = false;
    draw.all();
    sendNews();
  }

  return {
    stop,
    pause,
    step,
    toggle: () => (playing ? pause() : play()),
    isPlaying: () => playing,
  };
}
