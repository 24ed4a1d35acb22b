/** One paint for each frame: whoever changes the state asks for it, and it comes once. */

let draw = () => {};
let isAsked = false;
const after = [];

/** Set the function that draws the whole page from its state. */
export function setDraw(wanted) {
  draw = wanted;
}

/** Draw the page in the next frame. */
export function changed() {
  if (isAsked) return;
  isAsked = true;
  // A hidden tab gets no frames; its state is drawn by a timer, so that it is right when it shows.
  if (document.hidden) setTimeout(paint, 100);
  else requestAnimationFrame(paint);
}

// A frame that was asked for before the tab was hidden would come only when it shows again.
document.addEventListener('visibilitychange', () => isAsked && paint());

function paint() {
  if (!isAsked) return;
  isAsked = false;
  draw();
  while (after.length) after.shift()();
}

/** Call a function once the next drawing is done. */
export function afterDraw(work) {
  after.push(work);
  changed();
}
