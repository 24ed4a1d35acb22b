/** Files on their way to a branch: one whose name is taken waits for a choice, one that was cut can be sent again. */

import { announce } from '../core/announce.js';
import * as api from '../core/api.js';
import { button } from '../core/bits.js';
import { h } from '../core/dom.js';
import { icon } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { bytes, seen } from '../core/words.js';
import { later, load } from '../later.js';
import { attempt, focusComposer } from './actions.js';

const uploads = new Map(); // by branch
let made = 0;

/** Send files to the working directory of a branch. */
export function upload(session, branch, files) {
  const entries = files.map((file) => ({ id: (made += 1), file, name: file.name, at: session.path?.(branch).length ?? 0 }));
  uploads.set(`${session.id}/${branch}`, [...listOf(session, branch), ...entries]);
  focusComposer(branch);
  return Promise.all(entries.map((entry) => send(session, branch, entry)));
}

function listOf(session, branch) {
  return uploads.get(`${session.id}/${branch}`) ?? [];
}

function forget(session, branch, isMeant) {
  uploads.set(`${session.id}/${branch}`, listOf(session, branch).filter((one) => !isMeant(one)));
}

async function namesThere(session, branch) {
  const found = await api.get(`${session.where}/files`, { branch }).catch(() => null);
  return new Set(found?.files.map((one) => one.path));
}

/** Send a file; one that is there is replaced only if a person said so. */
async function send(session, branch, entry, isReplacing = false) {
  const stop = new AbortController();
  Object.assign(entry, { state: 'sending', problem: '', isReplacing, stop });
  changed();
  try {
    if (!isReplacing && (await namesThere(session, branch)).has(entry.name)) throw new api.Problem(409, 'file-exists', '');
    await api.send('PUT', `${session.where}/files/${encodeURIComponent(entry.name)}`, { query: { branch }, bytes: entry.file, signal: stop.signal, headers: isReplacing ? {} : { 'If-None-Match': '*' } });
    forget(session, branch, (one) => one.name === entry.name && one.state === 'there'); // it was replaced
    entry.state = 'there';
    session.filesVersion = (session.filesVersion ?? 0) + 1;
    load(later.cards).then((found) => found?.readCards(session, branch, entry.name));
  } catch (error) {
    if (error.name === 'AbortError') return;
    entry.state = error.kind === 'file-exists' ? 'taken' : error.status === 0 ? 'cut' : 'refused';
    entry.problem = { taken: 'is there already.', cut: 'was not sent: the connection was lost.', refused: `was not taken: ${error.message}` }[entry.state];
    announce(`${entry.name} ${entry.problem}`);
  }
  changed();
}

/** Send a file under a name that is free. */
async function keepBoth(session, branch, entry) {
  const [stem, suffix] = /^(.+?)((?:\.\w+)*)$/s.exec(entry.name).slice(1);
  const there = await namesThere(session, branch);
  for (const one of listOf(session, branch)) there.add(one.name);
  let number = 2;
  while (there.has(`${stem}-${number}${suffix}`)) number += 1;
  entry.name = `${stem}-${number}${suffix}`;
  await send(session, branch, entry);
}

/** Return the files that were added since the last question. */
export function chips(session, branch) {
  const shown = listOf(session, branch).filter((entry) => entry.state !== 'there' || entry.at === session.path(branch).length);
  if (!shown.length) return null;
  return h('ul', { class: 'chips', 'aria-label': 'Files' }, shown.map((entry) => h('li', { key: entry.id, class: `chip ${entry.state}` }, icon(entry.problem ? 'warn' : 'file'),
    h('span', {}, seen(entry.name)), h('span', { class: 'muted' }, entry.state === 'sending' ? 'sending' : seen(entry.problem) || bytes(entry.file.size)), choices(session, branch, entry))));
}

function choices(session, branch, entry) {
  const drop = () => attempt(async () => {
    forget(session, branch, (one) => one === entry);
    entry.stop.abort();
    if (entry.state === 'there') await api.remove(`${session.where}/files/${encodeURIComponent(entry.name)}`, { branch });
    session.filesVersion += 1;
  });
  return [
    entry.state === 'taken' ? [button('Replace', () => send(session, branch, entry, true), { kind: 'small' }), button('Keep both', () => keepBoth(session, branch, entry), { kind: 'small' })] : null,
    entry.state === 'cut' ? button('Send again', () => send(session, branch, entry, entry.isReplacing), { kind: 'small' }) : null,
    // What stood there before would not come back.
    entry.state === 'there' && entry.isReplacing ? null : button('', drop, { kind: 'quiet', sign: 'cross', label: `Remove ${seen(entry.name)}` }),
  ];
}
