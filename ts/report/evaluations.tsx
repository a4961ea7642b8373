/** Evaluations: how much each selector succeeds, and what it gains over the baseline on the same episodes. */
import type { Evaluation, EvaluationEntry } from './data.js';
import { decimal, integer, interval, percent, points } from './format.js';
import { Plot } from './parts.js';
import { differencePlot, taskPlot } from './plots.js';

/** One card an evaluation: its methods' differences, each with its own interval. */
export function Headline({ evaluations }: { evaluations: Evaluation[] }) {
  const cards = evaluations.flatMap((evaluation) =>
    evaluation.entries.filter((entry) => entry.role === 'method').map((entry) => ({ evaluation, entry })),
  );
  return (
    <div class="cards">
      {cards.map(({ evaluation, entry }) => (
        <div class="card">
          <div class="name">
            {entry.label}, {estimandName(evaluation)}
          </div>
          <div class="figure">{percent(entry.summary.successRate)}</div>
          <div class="detail">
            {points(entry.summary.difference)} points to {evaluation.baseline}{' '}
            {interval(entry.summary.interval)}
          </div>
        </div>
      ))}
    </div>
  );
}

/** One evaluation: its table, its differences, and success by task. */
export function EvaluationView({ evaluation, id }: { evaluation: Evaluation; id: string }) {
  const { tasks, seeds, entries } = evaluation;
  const clustered = evaluation.estimand === 'unseen-tasks';
  const severalRuns = entries.some(({ summary }) => summary.standardErrorRuns !== null);
  const lastMethod = entries.map((entry) => entry.role).lastIndexOf('method');
  return (
    <section id={id} aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>{evaluationTitle(evaluation)}</h2>
      <p class="lead">
        {evaluation.benchmark}, {tasks.length} tasks, seeds {integer(seeds.from)} to {integer(seeds.to)}.{' '}
        {clustered
          ? 'Training met none of these tasks: the interval draws tasks, then episodes within them.'
          : 'Training met these tasks with other seeds: the interval keeps the tasks and draws episodes.'}
      </p>
      <div class="scroll">
        <table>
          <caption>
            Success on the same episodes. Difference in percentage points to {evaluation.baseline}, paired by
            episode, with 95 % bootstrap intervals.
          </caption>
          <thead>
            <tr>
              <th scope="col">Selector</th>
              <th scope="col">Success</th>
              <th scope="col">± SE</th>
              {severalRuns && <th scope="col">± SE, runs</th>}
              <th scope="col">Full score</th>
              <th scope="col">Steps</th>
              <th scope="col">Episodes</th>
              <th scope="col">Difference</th>
              <th scope="col">95 %, {clustered ? 'other tasks' : 'other seeds'}</th>
              <th scope="col">95 %, {clustered ? 'other seeds' : 'other tasks'}</th>
              <th scope="col">Won / lost</th>
            </tr>
          </thead>
          <tbody>
            {entries.map((entry) => (
              <EntryRow entry={entry} clustered={clustered} severalRuns={severalRuns} />
            ))}
          </tbody>
        </table>
      </div>
      <Plot
        caption={`Difference to ${evaluation.baseline}: thick, 95 % on other seeds of these tasks; thin, on other tasks. Squares are controls, which should gain nothing.`}
        svg={differencePlot(evaluation)}
      />
      {entries.map(
        (entry, index) =>
          entry.role === 'method' && (
            <details open={index === lastMethod}>
              <summary>By task: {entry.label}</summary>
              <Plot
                caption={`Open circle: ${evaluation.baseline}. Filled circle: ${entry.label}.`}
                svg={taskPlot(evaluation, index)}
              />
            </details>
          ),
      )}
      <details>
        <summary>By task, as a table</summary>
        <TaskTable evaluation={evaluation} />
      </details>
      <details>
        <summary>What each row is</summary>
        <dl class="facts">
          {entries.map((entry) => (
            <>
              <dt>{entry.label}</dt>
              <dd>{entry.note}</dd>
            </>
          ))}
        </dl>
      </details>
    </section>
  );
}

interface EntryRowProps {
  entry: EvaluationEntry;
  clustered: boolean;
  severalRuns: boolean;
}

function EntryRow({ entry, clustered, severalRuns }: EntryRowProps) {
  const { summary } = entry;
  const other = clustered ? summary.intervals?.stratified : summary.intervals?.clustered;
  return (
    <tr class={entry.role}>
      <th scope="row">
        {entry.label}
        <span class={`tag ${entry.role}`}>{entry.role}</span>
      </th>
      <td>
        <b>{percent(summary.successRate)}</b>
      </td>
      <td>{percent(summary.standardErrorEpisodes)}</td>
      {severalRuns && <td>{percent(summary.standardErrorRuns)}</td>}
      <td>{percent(summary.fullScoreRate)}</td>
      <td>{decimal(summary.meanStepsOnSuccess)}</td>
      <td>{integer(summary.episodes)}</td>
      <td>
        <b>{points(summary.difference)}</b>
      </td>
      <td>{interval(summary.interval)}</td>
      <td>{interval(other ?? null)}</td>
      <td>{summary.difference === null ? '–' : `${summary.wins} / ${summary.losses}`}</td>
    </tr>
  );
}

function TaskTable({ evaluation }: { evaluation: Evaluation }) {
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Task</th>
            {evaluation.entries.map((entry) => (
              <th scope="col">{entry.label}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {evaluation.byTask.map(({ task, rates }) => (
            <tr>
              <th scope="row">{task}</th>
              {rates.map((rate) => (
                <td>{percent(rate, 0)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** On which seeds or tasks an evaluation was made. */
export function evaluationTitle(evaluation: Evaluation): string {
  return evaluation.estimand === 'unseen-seeds'
    ? `Unseen seeds of ${evaluation.tasks.length} training tasks`
    : `${evaluation.tasks.length} unseen tasks`;
}

function estimandName(evaluation: Evaluation): string {
  return evaluation.estimand === 'unseen-seeds' ? 'unseen seeds' : 'unseen tasks';
}
