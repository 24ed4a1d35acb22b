/** The state of a moment as the server has it, read once and shared by the tabs. */

import * as api from '../core/api.js';
import { failure, loading } from '../core/bits.js';
import { h } from '../core/dom.js';
import { changed } from '../core/loop.js';

const read = { key: '', data: null, problem: null };

/** Return the state of a moment: read once, and again when something of it changed. */
function momentData(session, moment) {
  const last = session.path(moment.branch)[moment.number - 1];
  const round = session.rounds.get(last?.round_id);
  const stamp = round?.state === 'created' ? 'runs' : round?.version ?? 0;
  const key = [session.id, moment.branch, moment.number, last?.state, stamp].join('/');
  if (read.key !== key && moment.number > 0) {
    read.key = key;
    load(session, moment, key);
  }
  if (moment.number === 0) return { data: null, problem: null, isEmpty: true };
  return read;
}

async function load(session, moment, key) {
  try {
    const data = await api.get(`${session.where}/branches/${api.path(moment.branch)}/rounds/${moment.number}`);
    if (read.key === key) Object.assign(read, { data, problem: null });
  } catch (error) {
    if (read.key === key) Object.assign(read, { data: null, problem: error.message });
  }
  changed();
}

/** Return the content of a tab that needs the moment: a sentence while there is none. */
export function withMoment(session, moment, view, nothing) {
  const { data, problem, isEmpty } = momentData(session, moment);
  if (isEmpty) return h('p', { class: 'muted pad' }, nothing);
  if (problem) return failure('This moment cannot be read', problem);
  return data ? view(data) : loading(4);
}
