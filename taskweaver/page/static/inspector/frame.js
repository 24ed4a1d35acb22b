/** Frames of a moment as tables. */

/** Return whether a variable can be opened as a table. */
export function isFrame() {
  return false;
}

/** Open a variable as a table. */
export function openFrame() {}
