/** The model that answers, in the bar on top: its name and place; a click changes it. */

import { isAble } from '../core/abilities.js';
import * as api from '../core/api.js';
import { h } from '../core/dom.js';
import { icon } from '../core/icons.js';
import { changed } from '../core/loop.js';
import { seen } from '../core/words.js';
import { later, withModule } from '../later.js';

let now = null;
let isAsked = false;

/** Read which model answers now. */
export async function readModel() {
  try {
    keepModel(await api.get('model'));
  } catch {
    // The chip keeps what it had: it is read again at the next focus of the window.
  }
}

/** Show a model as the one that answers. */
export function keepModel(found) {
  now = found;
  changed();
}

/** Return the sign of a model: on this machine, elsewhere, or none. */
export function modelSign(row) {
  if (!row || row.provider === 'offline') return 'lines';
  return row.is_local ? 'laptop' : 'cloud';
}

/** Open the dialog in which the model is chosen. */
export function chooseModel() {
  return withModule(later.models, (found) => found.openModels());
}

/** Return whether the model can be chosen here. */
export function mayChoose() {
  return isAble('get', 'models') && now?.may_change !== false;
}

/** Return whether it is known that no model answers but the built-in analyst. */
export function hasNoModel() {
  return Boolean(now) && (!now.model || now.model.provider === 'offline');
}

/** Return the chip; null where the server does not say which model answers. */
export function modelChip() {
  if (!isAble('get', 'model')) return null;
  if (!isAsked) {
    isAsked = true;
    readModel();
    addEventListener('focus', readModel);
  }
  if (!now) return null;
  const { model, answers, problem } = now;
  const isLost = answers === false || Boolean(problem);
  const place = !model ? '' : model.provider === 'offline' ? 'simple questions' : model.is_local ? 'on this machine' : model.label;
  const content = [icon(modelSign(model)), h('b', { class: 'shrink' }, seen(model?.name ?? 'No model')), h('span', { class: isLost ? 'failed-text' : 'muted' }, isLost ? 'no answer' : seen(place))];
  const kind = `model-chip${isLost ? ' lost' : ''}`;
  if (!now.may_change) return h('span', { class: kind, title: seen(problem || now.why_fixed || 'Chosen by the owner of this server.') }, content);
  return h('button', { type: 'button', class: kind, title: seen(problem) || 'Choose a model', 'aria-label': `Model: ${seen(model?.name ?? 'none')}, ${isLost ? 'no answer' : place}. Choose a model`, onclick: chooseModel }, content, icon('down'));
}
