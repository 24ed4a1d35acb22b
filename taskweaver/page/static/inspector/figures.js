/** Figures of a branch up to a moment, the newest first. */

import { h } from '../core/dom.js';
import { momentAddress } from '../core/route.js';
import { seen } from '../core/words.js';
import { PICTURE, openable } from '../session/picture.js';

const MOST = 60;

function figuresUntil(session, moment) {
  const numbers = new Map(session.path(moment.branch).slice(0, moment.number).map((round) => [round.round_id, round.number]));
  return [...session.artifacts.values()].filter((one) => numbers.has(one.round_id) && PICTURE.test(one.path))
    .map((one) => ({ ...one, number: numbers.get(one.round_id) })).sort((a, b) => b.number - a.number);
}

/** Return the tab of figures. */
export function figuresTab(session, moment) {
  const found = figuresUntil(session, moment);
  return h('section', { class: 'data-section' },
    h('div', { class: 'section-head' }, h('h3', {}, `Figures until round ${moment.number}`), h('span', { class: 'end' }, String(found.length))),
    found.length ? null : h('p', { class: 'muted' }, 'Charts appear here.'),
    found.slice(0, MOST).map((one) => thumb(session, moment, one)));
}

/** Return the newest figure, small. */
export function latestFigure(session, moment) {
  const [newest] = figuresUntil(session, moment);
  if (!newest) return null;
  return h('section', { class: 'data-section' }, h('div', { class: 'section-head' }, h('h3', {}, 'Latest figure')), thumb(session, moment, newest));
}

function thumb(session, moment, one) {
  const style = one.width ? { 'aspect-ratio': `${one.width} / ${one.height}` } : {};
  return h('div', { key: `${one.round_id}/${one.path}`, class: 'thumb' },
    h('div', { class: 'paper', style }, openable(session, moment.branch, one.path, one)),
    h('a', { class: 'caption muted', href: momentAddress(session.id, moment.branch, one.number) }, `round ${one.number}, ${seen(one.path)}`));
}
