/** The page's components in all their states, for tests alone: each section has one of them. */

import { empty, failure, loading } from './core/bits.js';
import { h, render } from './core/dom.js';
import { stateTag } from './core/icons.js';
import { setDraw } from './core/loop.js';
import { composer } from './session/composer.js';
import { forkPanel } from './session/fork_panel.js';
import { SessionModel } from './session/model.js';
import { outline } from './session/outline.js';
import { round } from './session/round.js';
import { applyEvent, newRound, storedRound } from './session/rounds.js';
import { fold, ui } from './state.js';

const HOSTILE = '<img src=x onerror="document.title=\'RUN\'"><script>document.title="RUN"</script>\u202Egnp.exe [a](javascript:alert(1))';
const AT = '2026-01-01T10:00:00.000+00:00';
const CELL = "total = sales['price'].sum()\nprint(total)";
const LONG = Array.from({ length: 100 }, (_, at) => `line ${at}`).join('\n');
const TABLE = '     a  name\n0  3.0     x\n1  1.5  None\n2  2.0     z';

const part = (type, content, extra = null) => ({ id: `${type}-${String(content).length}`, type, content, extra });
const post = (from, to, message, ...attachment_list) => ({ id: `${from}-${message.length}-${attachment_list.length}`, send_from: from, send_to: to, message, attachment_list });
const result = (text) => part('execution_result', text);
const cell = (status, ...parts) => post('CodeInterpreter', 'Planner', '', part('reply_content', CELL), part('execution_status', status), ...parts);
const answer = (text, ...parts) => post('Planner', 'User', text, ...parts);

/** Rounds that are over: a title, their state, their posts. */
const OVER = [
  ['answered', 'finished', [answer('Rows of 2024 (1,204 rows)\n\nThe total is **42** and the mean 7.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nx = 1\n```', part('plan', '1. look\n2. add'), part('answer_check', '', { unsupported_numbers: ['7'] }))]],
  ['ran, with a table', 'finished', [cell('SUCCESS', result(`### Result\n\`\`\`\n${TABLE}\n\`\`\``))]],
  ['ran, with long output', 'finished', [cell('SUCCESS', result(`### Output\n\`\`\`\n${LONG}\n\`\`\``))]],
  ['ran, with a picture that is not there', 'finished', [cell('SUCCESS', part('artifact_paths', ['lost.png', 'data.csv']))]],
  ['failed, then corrected', 'finished', [cell('FAILURE', part('code_error', "Traceback\n  line 1\nKeyError: 'pric' (names like it: 'price')")), post('CodeInterpreter', 'Planner', '', part('reply_content', `${CELL}\nprint(1)`), part('execution_status', 'SUCCESS'))]],
  ['denied', 'finished', [post('CodeInterpreter', 'Planner', 'The user did not allow it.', part('reply_content', CELL), part('verification', 'INCORRECT: import of os is not allowed.'))]],
  ['given up', 'finished', [answer('I cannot tell.', part('plan', '1. look\n2. add'), part('current_plan_step', '2. add'), part('stop', 'TaskFailure'))]],
  ['cut off', 'created', [post('Planner', 'CodeInterpreter', 'Add it up', part('plan', '1. look'))]],
  [HOSTILE, 'finished', [cell('SUCCESS', result(`### Output\n\`\`\`\n${HOSTILE}\n\`\`\``)), answer(HOSTILE, part('plan', `1. ${HOSTILE}`))]],
];

/** Events of rounds that run: what was written, what is printed, and what waits for a person. */
const RUNNING = [
  ['writes', []],
  ['runs', [['post_status_update', 'running code', {}], ['post_execution_output', '', { text: 'tick 1\ntick 2\n' }]]],
  ['asks', [['post_confirmation_request', CELL, { id: 'ask', kinds: ['shell', `tool ${HOSTILE}`] }]]],
];

function makeSession() {
  const session = new SessionModel('states');
  const names = ['main', ...RUNNING.map(([name]) => name), 'empty', HOSTILE.slice(0, 60)];
  const index = OVER.map(([title, state], at) => ({ round_id: `r${at}`, branch: 'main', number: at + 1, title, state: state === 'created' ? 'failed' : state, forks: at === 1 ? names.slice(1) : [] }));
  RUNNING.forEach(([name], at) => index.push({ round_id: `run-${at}`, branch: name, number: 3, title: `A round that ${name}`, state: 'created', forks: [] }));
  Object.assign(session, { isLoaded: true, pictures: {}, merges: [{ branch: 'main', number: 2, source: 'runs' }] });
  session.setIndex(index);
  session.setView({ title: HOSTILE, branches: names.map((name, at) => ({ name, parent: at ? 'main' : null, is_current: !at, state: 'idle' })) });
  OVER.forEach(([title, state, post_list], at) => session.rounds.set(`r${at}`, storedRound({ id: `r${at}`, state, user_query: title, post_list }, 'main')));
  RUNNING.forEach(([name, events], at) => {
    const made = newRound(`run-${at}`, name, `A round that ${name}`, AT);
    const send = (type, msg, extra) => applyEvent(made, { type, msg, extra, at: AT, post_id: 'p' });
    send('post_start', '', { role: 'CodeInterpreter' });
    send('post_attachment_update', CELL, { id: 'c', type: 'reply_content' });
    for (const event of events) send(...event);
    session.rounds.set(made.id, made);
    session.messages.push({ message_id: `m${at}`, branch: name, state: 'running', round_id: made.id, text: '' });
  });
  session.asking = [{ confirmation_id: 'ask', branch: 'asks', kinds: ['shell'], content: CELL, diff: '-a\n+b', is_editable: true }];
  session.unread.add('r2');
  for (const name of names) fold(session, name, name === 'empty');
  return session;
}

const session = makeSession();
const preview = { rounds: 2, variables: 3, variables_bytes: 1_200_000, carried: [{ name: 'df', size: 1_199_000 }, { name: HOSTILE, size: null }], state: 'stored', files: 2, files_bytes: 900, files_differ: ['late.csv'], facts: 1, core: 2, not_carried: [`lock: ${HOSTILE}`] };
ui.session = session;
ui.place = { kind: 'session', session: 'states', branch: 'main', round: null };

function fork(values) {
  ui.fork = { branch: 'main', number: 2, name: HOSTILE.slice(0, 60), question: '', preview: null, isBusy: false, problem: '', ...values };
  const made = forkPanel(session);
  return h('div', { key: JSON.stringify(values).length }, made);
}

const roundOf = (entry) => round(session, entry, { branch: entry.branch, number: 99, isPast: false });
const old = { round_id: 'old', branch: 'main', number: 1, title: 'An old round', state: 'finished', forks: [] };

function states() {
  return [
    ...session.index.map((entry) => [`Round: ${entry.title}`, roundOf(entry)]),
    ['Round that is not loaded yet', roundOf(old)],
    ['Outline', outline(session)],
    ['Fork, looking', fork({})], ['Fork', fork({ preview })], ['Fork, refused', fork({ preview, problem: HOSTILE })],
    ['Composer', composer(session, 'main', 'main')], ['Composer of a branch that is busy', composer(session, 'runs', 'second')],
    ['Empty', empty('There is nothing yet.')], ['Loading', loading(3)], ['Failure', failure('It failed', HOSTILE)],
    ['Tags', h('p', {}, ['running', 'asks', 'failed', 'merged', 'stopped'].map((one) => stateTag(one)))],
  ];
}

setDraw(() => {});
render(document.getElementById('app'), h('main', { class: 'conversation' }, states().map(([title, shown], at) =>
  h('div', { key: `state-${at}`, class: 'column', 'data-state': title }, h('h2', {}, title.slice(0, 60)), shown))));
document.body.dataset.ready = 'yes';
