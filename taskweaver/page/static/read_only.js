/** A conversation in a file of its own: the rounds as the page shows them, without a server. */

import { h, render } from './core/dom.js';
import { changed, setDraw } from './core/loop.js';
import { count, seen } from './core/words.js';
import { treeOf } from './session/paths.js';
import { round } from './session/round.js';
import { storedRound } from './session/rounds.js';

const data = JSON.parse(document.getElementById('data').textContent);
const index = data.rounds.map((one, at) => ({ round_id: one.id, branch: data.branch, number: at + 1, title: one.question, state: one.state, forks: [] }));

/** The session as far as the rounds need it: nothing runs, and its pictures are in the file. */
const session = {
  id: '', where: '', asking: [], messages: [], artifacts: new Map(), pictures: data.pictures, isReadOnly: true,
  tree: treeOf([{ name: data.branch, parent: null, state: 'idle' }], index),
  rounds: new Map(data.rounds.map((one) => [one.id, storedRound(one, data.branch)])),
  stateOf: () => 'idle',
};

setDraw(() => {
  render(document.getElementById('app'),
    h('header', { class: 'topbar' }, h('h1', { class: 'session-name' }, seen(data.title)), h('span', { class: 'muted' }, `${seen(data.branch)}, ${count(index.length, 'round')}, read only`)),
    h('main', { class: 'conversation' }, h('div', { class: 'column' }, h('h2', { class: 'unseen' }, 'Rounds'), index.map((entry) => round(session, entry, { branch: data.branch, number: index.length, isPast: true })))));
  document.body.dataset.ready = 'yes';
});
changed();
