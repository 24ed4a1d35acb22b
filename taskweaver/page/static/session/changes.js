/** Changes of a session that are not questions: its title, and the end of its last round. */

import * as api from '../core/api.js';
import { changed } from '../core/loop.js';
import { go } from '../core/route.js';
import { fold, notify, openWay, ui } from '../state.js';
import { attempt, focusComposer, focusOn, goTo } from './actions.js';
import { titled } from './paths.js';

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

/** Delete a session, once it was asked. */
export function deleteSession(session) {
  notify(`Delete ${session.name} with its files?`, { text: 'Delete', run: () => attempt(async () => {
    go('#/');
    await api.remove(session.where);
  }) });
  changed();
}

/** Rename a branch: its name in the outline becomes a field. */
export function renameBranch(session, branch) {
  Object.assign(ui.panes, { isTreeHidden: false });
  Object.assign(ui, { pane: 'tree', treeFocus: `b:${branch}` });
  session.renamedBranch = branch;
  openWay(session, session.tree.get(branch).parent);
  changed();
}

/** Give the branch that is renamed the title that was typed, or none; a refused one stays in its field. */
export async function endBranchRenaming(session, title = '') {
  const branch = session.renamedBranch;
  const text = title.trim();
  if (!branch) return;
  const isNew = text && text !== titled(session, branch);
  if (isNew && !(await attempt(() => api.change(`${session.where}/branches/${api.path(branch)}`, { title: text })))) return;
  const isLeft = !document.activeElement?.matches('.rename-field'); // whoever clicked elsewhere stays there
  session.renamedBranch = '';
  if (isNew) await session.reload();
  changed();
  if (!isLeft) focusOn(`[data-row="${CSS.escape(`b:${branch}`)}"]`);
}

/**
 * Undo the last round of a branch: go on a new branch that ends before it, with variables, files and
 * memory as they were. The round stays on its branch, so it can be taken back.
 */
export function undoRound(session, { branch, total }) {
  if (!total) return null;
  return attempt(async () => {
    const made = await api.post(`${session.where}/branches`, { source: branch, at_round: total - 1 });
    await session.reload();
    fold(session, made.name, false);
    goTo(session, made.name);
    openWay(session);
    focusComposer(made.name);
    const redo = () => {
      goTo(session, branch);
      focusComposer(branch);
    };
    notify(`Undone. You are on a new branch, ${made.name}, without round ${total}; ${titled(session, branch)} keeps it.`, { text: 'Redo', run: redo });
  });
}
