/**
 * One event stream for a browser. The tab that holds the lock reads it and passes events on; the
 * others listen. When it goes, another tab takes over, from the last number that it has seen.
 */

import { ROOT, send } from './api.js';

const CHANNEL = `taskweaver.events${ROOT}`; // other servers may have other paths of one origin
const FIRST_WAIT_S = 0.5;
const MOST_WAIT_S = 15;
const MOST_QUIET_MS = 40_000; // the server sends something every 15 seconds
const CHANGES = 'changes';

const channel = 'BroadcastChannel' in window ? new BroadcastChannel(CHANNEL) : null;
const me = crypto.getRandomValues(new Uint32Array(2)).join('-');

/** State of the connection: `isOpen`, and seconds until the next attempt. */
export const connection = { isOpen: true, retryAt: null, problem: null };

const wants = new Map(); // what each tab follows, and what it has: tab -> {session, after, changes}
const seen = new Map(); // last number of each source that this tab has handled
let listener = () => {};
let onState = () => {};
let onGap = () => {};
let isLeader = false;
let asked = 0; // how often this tab has asked to follow
let isAnswered = false; // whether events that are passed on are those that it asked for last
let abort = null;
let wake = () => {};

/** Begin; `onEvent(kind, data)` gets each event once, `gap(session)` says that some were lost. */
export function startStream({ onEvent, onConnection, gap }) {
  listener = onEvent;
  onState = onConnection;
  onGap = gap;
  channel?.addEventListener('message', ({ data }) => heard(data));
  addEventListener('pagehide', () => tell({ kind: 'leave', tab: me }));
  addEventListener('online', retryNow);
  if (navigator.locks && channel) navigator.locks.request(CHANNEL, lead);
  else document.addEventListener('visibilitychange', leadWhileVisible);
  if (!(navigator.locks && channel)) leadWhileVisible();
}

/**
 * Follow a session after one of its events, and the list of sessions after one of its changes: those
 * that were read. An empty id follows the list alone.
 */
export function follow(session, after, changes) {
  if (session) seen.set(session, after);
  if (!seen.has(CHANGES) && changes !== undefined) seen.set(CHANGES, changes);
  const want = { session, after, changes: seen.get(CHANGES) };
  wants.set(me, want);
  asked += 1;
  isAnswered = isLeader;
  tell({ kind: 'want', tab: me, asked, ...want });
  restart();
}

/** Follow a session again after other places, from the last of its events that came here; return whether one is known. */
export function resume(session) {
  if (wants.get(me)?.session !== session && seen.has(session)) follow(session, seen.get(session));
  return seen.has(session);
}

/** Try to connect again at once. */
export function retryNow() {
  if (isLeader) wake();
  else tell({ kind: 'retry' });
}

function tell(message) {
  channel?.postMessage(message);
}

function heard(message) {
  if (message.kind === 'event') takePassed(message.name, message.data);
  else if (message.kind === 'wanted') isAnswered ||= message.tab === me && message.asked === asked;
  else if (message.kind === 'state' && !isLeader) setState(message.state);
  else if (message.kind === 'gap') onGap(message.session, message.status);
  else if (message.kind === 'who' && wants.has(me)) {
    const { session } = wants.get(me);
    tell({ kind: 'want', tab: me, asked, session, after: seen.get(session) ?? 0, changes: seen.get(CHANGES) });
  } else if (isLeader && message.kind === 'want') {
    wants.set(message.tab, { session: message.session, after: message.after, changes: message.changes });
    restart();
    tell({ kind: 'wanted', tab: message.tab, asked: message.asked });
  } else if (isLeader && message.kind === 'leave') wants.delete(message.tab);
  else if (isLeader && message.kind === 'retry') wake();
}

/**
 * Take an event that the leader passes on. Those of the session that come before its answer belong to
 * a stream that began after what this tab wants: it reads them again, with those before them.
 */
function takePassed(name, data) {
  if (isAnswered || isChange(data)) take(name, data);
}

function take(name, data) {
  const source = isChange(data) ? CHANGES : data.session_id;
  if (data.number <= (seen.get(source) ?? -1)) return;
  if (source !== CHANGES && wants.get(me)?.session !== source) return;
  seen.set(source, data.number);
  listener(name, data);
}

function isChange(data) {
  return !('type' in data);
}

function leadWhileVisible() {
  if (document.hidden) {
    isLeader = false;
    abort?.abort();
  } else if (!isLeader) lead();
}

async function lead() {
  isLeader = true;
  isAnswered = true;
  tell({ kind: 'who' });
  let wait = FIRST_WAIT_S;
  while (isLeader) {
    if (!wants.size) {
      // What is read first says where the stream begins.
      await new Promise((done) => {
        wake = done;
      });
      continue;
    }
    const outcome = await readOnce();
    if (!isLeader) return;
    if (outcome === 'again') {
      wait = FIRST_WAIT_S;
      continue;
    }
    if (outcome === 'ended') wait = FIRST_WAIT_S;
    setState({ isOpen: false, retryAt: Date.now() + wait * 1000, problem: null });
    await new Promise((done) => {
      wake = done;
      setTimeout(done, wait * 1000);
    });
    wait = Math.min(MOST_WAIT_S, wait * 2);
  }
}

function restart() {
  if (!isLeader) return;
  abort?.abort();
  wake();
}

function positions() {
  const found = new Map();
  const least = (name, number) => name && number !== undefined && found.set(name, Math.min(found.get(name) ?? Infinity, number));
  for (const [tab, { session, after, changes }] of wants) {
    least(CHANGES, tab === me ? seen.get(CHANGES) : changes);
    least(session, tab === me ? seen.get(session) : after);
  }
  return found;
}

/**
 * Read the stream until it ends; return `again` when it must be asked anew at once. One that is quiet
 * for too long has lost its connection, which no end of it may tell: a network that is gone does not.
 */
async function readOnce() {
  const own = new AbortController();
  abort = own;
  let alarm = 0;
  let isLost = false;
  const rearm = () => {
    clearTimeout(alarm);
    alarm = setTimeout(() => {
      isLost = true;
      own.abort();
    }, MOST_QUIET_MS);
  };
  const from = positions();
  const sessions = [...from.keys()].filter((name) => name !== CHANGES);
  try {
    const id = [...from].map(([name, number]) => `${name}:${number}`).join(',');
    const query = { sessions: sessions.join(',') };
    // A proxy may pass on a stream as it comes only where the request says that it is one.
    const headers = { Accept: 'text/event-stream', ...(id ? { 'Last-Event-ID': id } : {}) };
    rearm();
    const response = await send('GET', 'events', { query, headers, signal: own.signal });
    setState({ isOpen: true, retryAt: null, problem: null });
    await readEvents(response.body.getReader(), own.signal, rearm);
    return own.signal.aborted ? 'again' : 'ended';
  } catch (error) {
    if (error.name === 'AbortError') return isLost ? 'failed' : 'again';
    if ([404, 409, 410].includes(error.status)) return afterRefusal(error, sessions);
    return 'failed';
  } finally {
    clearTimeout(alarm);
  }
}

function afterRefusal(error, sessions) {
  for (const session of sessions) {
    tell({ kind: 'gap', session, status: error.status });
    onGap(session, error.status);
    for (const [tab, want] of wants) if (want.session === session) wants.delete(tab);
  }
  seen.clear();
  if (!sessions.length) onGap('', error.status);
  return 'failed';
}

async function readEvents(reader, signal, rearm) {
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    rearm();
    if (done || signal.aborted) return; // what was read is asked for again
    rest += decoder.decode(value, { stream: true });
    const parts = rest.split('\n\n');
    rest = parts.pop();
    for (const part of parts) handle(part);
  }
}

function handle(part) {
  const fields = {};
  for (const line of part.split('\n')) {
    const at = line.indexOf(': ');
    if (at > 0) fields[line.slice(0, at)] = line.slice(at + 2);
  }
  if (!fields.data) return;
  const data = JSON.parse(fields.data);
  if (fields.event === 'position') {
    if (!seen.has(CHANGES)) seen.set(CHANGES, data[CHANGES]);
    return;
  }
  tell({ kind: 'event', name: fields.event, data });
  passedOn(data);
  take(fields.event, data);
}

/** Tabs have what was told to them: a stream that begins again need not repeat it. */
function passedOn(data) {
  for (const want of wants.values()) {
    if (isChange(data)) want.changes = Math.max(want.changes ?? 0, data.number);
    else if (want.session === data.session_id) want.after = Math.max(want.after, data.number);
  }
}

function setState(state) {
  Object.assign(connection, state);
  if (isLeader) tell({ kind: 'state', state });
  onState();
}
