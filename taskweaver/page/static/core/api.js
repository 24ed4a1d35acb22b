/** Requests to the agent API: the token goes in a header, never in an address or a cookie. */

/** Path of the server: `/`, or one such as `/user/ann/taskweaver/` that a proxy puts before it. */
export const ROOT = location.pathname.replace(/[^/]*$/, '').replace(/^\/+/, '/'); // never another host

const PREFIX = `${ROOT}agent/v1`;
const KEY = `taskweaver.token${ROOT === '/' ? '' : ROOT}`;

/** An answer that is no success; `status` is 0 when the server cannot be reached. */
export class Problem extends Error {
  constructor(status, kind, detail) {
    super(detail);
    this.status = status;
    this.kind = kind;
  }
}

let token = localStorage.getItem(KEY) ?? '';
let onRefused = () => {};

/** Take the token out of the address into the browser's store, and out of its history. */
export function takeToken() {
  const found = /^#token=([^&/]+)/.exec(location.hash);
  if (!found) return;
  keepToken(decodeURIComponent(found[1]));
  history.replaceState(null, '', `${location.pathname}#/`);
}

/** Keep a token for this origin; an empty one signs out. */
export function keepToken(text) {
  token = text;
  if (text) localStorage.setItem(KEY, text);
  else localStorage.removeItem(KEY);
}

/** Return whether there is a token. */
export function hasToken() {
  return token !== '';
}

/** Call a function when the server refuses the token. */
export function whenRefused(listener) {
  onRefused = listener;
}

/** Join parts of a path, each escaped. */
export function path(...parts) {
  return parts.map((part) => encodeURIComponent(part)).join('/');
}

/** Return an address of the API with a query; parameters that are undefined are left out. */
export function address(where, query = {}) {
  const known = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(known.map(([name, value]) => [name, String(value)])).toString();
  return `${PREFIX}/${where}${text ? `?${text}` : ''}`;
}

/** Send a request; return the response. Raises Problem. */
export async function send(method, where, { query, body, bytes, signal, headers = {} } = {}) {
  const used = token;
  const sent = { ...(used ? { Authorization: `Bearer ${used}` } : {}), ...headers };
  if (body !== undefined) sent['Content-Type'] = 'application/json';
  if (bytes !== undefined) sent['Content-Type'] = 'application/octet-stream';
  let response;
  try {
    response = await fetch(address(where, query), {
      method,
      headers: sent,
      body: bytes ?? (body === undefined ? undefined : JSON.stringify(body)),
      signal,
      credentials: 'same-origin', // cookies of a proxy's login: the server reads none
      redirect: 'manual',
      cache: 'no-store',
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Problem(0, 'unreachable', 'The server cannot be reached.');
  }
  if (response.ok) return response;
  // Only a proxy redirects: to its login.
  if (response.type === 'opaqueredirect') throw new Problem(0, 'login', 'The login in front of this server has ended: load the page again.');
  // A late refusal of another token says nothing of the one that was given since.
  if (response.status === 401 && used === token) onRefused();
  throw await problemOf(response);
}

async function problemOf(response) {
  let found = {};
  try {
    found = await response.json();
  } catch {
    // The body is no problem document: the status says it all.
  }
  const kind = String(found.type ?? '').split(':').pop();
  const flaws = (found.errors ?? []).map((one) => [one.pointer === '/' ? '' : one.pointer.slice(1), one.detail.replace(/^Value error, /, '')].filter(Boolean).join(': '));
  const text = flaws.length ? `Not accepted: ${flaws.join('; ')}.` : found.detail;
  return new Problem(response.status, kind, text ?? `The server answered ${response.status}.`);
}

/** GET a JSON document. */
export async function get(where, query, signal) {
  return (await send('GET', where, { query, signal })).json();
}

/** POST a JSON body, or none; return the JSON answer, null if there is none. */
export async function post(where, body = undefined, query = undefined) {
  return answer(await send('POST', where, { body, query }));
}

/** PUT a JSON body. */
export async function put(where, body, query = undefined) {
  return answer(await send('PUT', where, { body, query }));
}

/** PATCH with a JSON body. */
export async function change(where, body) {
  return answer(await send('PATCH', where, { body }));
}

/** DELETE. */
export async function remove(where, query = undefined) {
  return answer(await send('DELETE', where, { query }));
}

async function answer(response) {
  return response.status === 204 ? null : response.json();
}

/** Download a file by an address that is good once. */
export async function save(sessionPath, file, branch) {
  const made = await post(`${sessionPath}/links/${file.split('/').map(encodeURIComponent).join('/')}`, { purpose: 'download' }, { branch });
  const link = document.createElement('a');
  link.href = ROOT + made.url.slice(1);
  link.download = file.split('/').pop();
  link.click();
}
