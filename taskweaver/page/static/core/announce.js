/** The polite live region: steps of the work in words, never its tokens. */

let pending = null;

/** Say something to screen readers; what follows at once takes its place. */
export function announce(text) {
  const region = document.getElementById('live');
  clearTimeout(pending);
  pending = setTimeout(() => {
    region.textContent = text;
  }, 100);
}
