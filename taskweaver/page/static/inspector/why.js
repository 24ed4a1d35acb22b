/** Why: what stands behind the answer of a round, as far as the session keeps it. */

import { withCode } from '../core/bits.js';
import { h } from '../core/dom.js';
import { count, seen } from '../core/words.js';
import { last } from '../session/rounds.js';
import { withMoment } from './moment.js';

/** Return the tab. */
export function whyTab(session, moment) {
  return withMoment(session, moment, (data) => {
    const entry = session.path(moment.branch)[moment.number - 1];
    const round = session.rounds.get(entry?.round_id);
    const checks = round?.posts.flatMap((post) => post.parts.filter((part) => part.type === 'answer_check')) ?? [];
    return [prompt(data, moment), reasons(round), evidence(checks.at(-1)?.extra?.evidence ?? [])];
  }, 'Ask something: what stood behind the answer is listed here.');
}

function section(title, ...content) {
  return h('section', { class: 'data-section' }, h('div', { class: 'section-head' }, h('h3', {}, title)), content);
}

function prompt(data, moment) {
  const notes = /^(?:[^\n]+\n)*(?=.)/.exec(data.round.user_query ?? '')?.[0] ?? '';
  const facts = data.memory?.facts ?? [];
  return section(`What round ${moment.number} was asked with`,
    h('ul', { class: 'plain' },
      h('li', {}, `${count(moment.number - 1, 'earlier round')} of its path, old ones summarised`),
      h('li', {}, `${count(data.variables.length, 'variable')}, by name, type and size`),
      data.files?.is_known ? h('li', {}, `${count(data.files.total, 'file')}, by name and beginning`) : null,
      facts.length ? h('li', {}, `${count(facts.length, 'fact')}: `, facts.map((fact) => seen(fact.text)).join('; ')) : null),
    notes.trim() && notes.trim() !== data.round.question?.trim() ? h('pre', { tabindex: 0, role: 'group', 'aria-label': 'Request' }, seen(data.round.user_query)) : null);
}

function reasons(round) {
  const thoughts = (round?.posts ?? []).map((post) => [post.from, last(post, 'plan_reasoning') || last(post, 'thought')]).filter(([, text]) => text.trim());
  if (!thoughts.length) return null;
  return section('Reasons the roles gave', h('ol', { class: 'plain' }, thoughts.map(([from, text]) => h('li', {}, h('b', {}, `${seen(from)}: `), withCode(text)))));
}

function evidence(list) {
  if (!list.length) return null;
  return section('Where the numbers came from', h('ul', { class: 'evidence' }, list.slice(0, 100).map((one) =>
    h('li', {}, h('b', {}, seen(one.text)), h('span', { class: 'muted' }, ` ${one.cell ? `cell ${one.cell}, ` : ''}${one.where.toLowerCase()}, line ${one.line}`), h('code', { class: 'original' }, seen(one.original))))));
}
