/** Addresses of the page: `#/s/<session>/<branch>/<round>` and the like. */

const listeners = [];

/** Return the place that the address names. */
export function place() {
  const parts = location.hash.replace(/^#\/?/, '').split('/').filter(Boolean).map(decodeURIComponent);
  const [kind, ...rest] = parts;
  if (kind === 's' && rest[0]) {
    const number = Number.parseInt(rest[2] ?? '', 10);
    return { kind: 'session', session: rest[0], branch: rest[1] ?? '', round: Number.isInteger(number) && number > 0 ? number : null };
  }
  if (kind === 'c' && rest.length >= 3) {
    return { kind: 'compare', session: rest[0], branch: rest[1], other: rest[2], round: null };
  }
  if (kind === 'searches') return { kind: 'searches', run: rest[0] ?? '', node: rest[1] ?? '' };
  return { kind: 'sessions' };
}

/** Return the address of a moment; without a round it is the end of the branch. */
export function momentAddress(session, branch, round = null) {
  const parts = ['s', session, branch, ...(round ? [String(round)] : [])];
  return `#/${parts.map(encodeURIComponent).join('/')}`;
}

/** Return the address of a comparison. */
export function compareAddress(session, branch, other) {
  return `#/${['c', session, branch, other].map(encodeURIComponent).join('/')}`;
}

/** Return the address of a search, or of one of its attempts. */
export function searchAddress(run = '', node = '') {
  return `#/${['searches', run, node].filter(Boolean).map(encodeURIComponent).join('/')}`;
}

/** Go to an address; `replace` leaves no entry in the history. */
export function go(address, { replace = false } = {}) {
  if (address === location.hash) return;
  if (replace) {
    history.replaceState(null, '', address);
    for (const listener of listeners) listener();
  } else location.hash = address;
}

/** Call a function when the address changes. */
export function onPlace(listener) {
  listeners.push(listener);
  addEventListener('hashchange', listener);
}
