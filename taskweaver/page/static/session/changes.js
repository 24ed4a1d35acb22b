/** Changes of a session that are not questions: its title, and the end of its last round. */

import * as api from '../core/api.js';
import { changed } from '../core/loop.js';
import { notify } from '../state.js';
import { attempt } from './actions.js';

/** Rename a session: its name in the bar becomes a field. */
export function renameSession(session) {
  session.isRenaming = true;
  changed();
}

/** Give a session the title that was typed. */
export function endRenaming(session, title) {
  session.isRenaming = false;
  const text = title.trim();
  if (text && text !== session.name) attempt(() => api.change(session.where, { title: text }));
  else changed();
}

/** Undo the last round of a branch, once the person has said so. */
export function undoRound(session, moment) {
  if (!moment.total) return;
  notify(`Undo round ${moment.total} of ${moment.branch}? Its variables go back, its files stay.`, { text: 'Undo', run: () => undo(session, moment.branch) });
  changed();
}

function undo(session, branch) {
  return attempt(async () => {
    await api.post(`${session.where}/branches/${api.path(branch)}/undo`);
    await session.reload();
  });
}
