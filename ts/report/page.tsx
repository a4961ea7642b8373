/**
 * report.html: one file, no script, no network. Components return escaped text by default; the only raw markup is
 * our own style sheet and the SVG that our own plots drew.
 */
import { renderToString } from 'preact-render-to-string';
import type {
  Collection,
  Evaluation,
  EvaluationEntry,
  LearningLoop,
  Provenance,
  ReportData,
  Training,
} from './data.js';
import { ExampleView } from './examples.js';
import { decimal, integer, interval, percent, points } from './format.js';
import { collectionPlot, curvePlot, differencePlot, learningPlot, taskPlot } from './plots.js';
import { styles } from './styles.js';

/** The whole document. Nothing in it is executed or fetched: the policy forbids both. */
export function renderReport(data: ReportData): string {
  return `<!doctype html>\n${renderToString(<Document data={data} />)}\n`;
}

function Document({ data }: { data: ReportData }) {
  return (
    <html lang="en">
      <head>
        <meta charSet="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta
          http-equiv="Content-Security-Policy"
          content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
        />
        <meta name="referrer" content="no-referrer" />
        <title>{data.title}</title>
        <style dangerouslySetInnerHTML={{ __html: styles }} />
      </head>
      <body>
        <header>
          <h1>{data.title}</h1>
          <p class="lead">
            Written {data.createdAt.slice(0, 16).replace('T', ' ')} UTC. Every figure is measured by the runs
            listed at the end.
          </p>
          <Contents data={data} />
          <Headline evaluations={data.evaluations} />
        </header>
        <main>
          {data.evaluations.map((evaluation, index) => (
            <EvaluationView evaluation={evaluation} id={`evaluation-${index}`} />
          ))}
          {data.loops.map((loop, index) => (
            <LoopView loop={loop} id={`loop-${index}`} />
          ))}
          {data.examples.length > 0 && <Examples data={data} />}
          {data.trainings.map((training, index) => (
            <TrainingView training={training} id={`training-${index}`} />
          ))}
          {data.collections.map((collection, index) => (
            <CollectionView collection={collection} id={`collection-${index}`} />
          ))}
          <ProvenanceView provenance={data.provenance} />
        </main>
        <footer>Best-of-Q, after arXiv 2601.22701.</footer>
      </body>
    </html>
  );
}

function Contents({ data }: { data: ReportData }) {
  const links = [
    ...data.evaluations.map((evaluation, index) => [`evaluation-${index}`, evaluationTitle(evaluation)]),
    ...data.loops.map((loop, index) => [`loop-${index}`, `Loop ${loop.name}`]),
    ...(data.examples.length > 0 ? [['examples', 'Examples']] : []),
    ...data.trainings.map((training, index) => [`training-${index}`, `Training ${training.name}`]),
    ...data.collections.map((collection, index) => [`collection-${index}`, `Episodes ${collection.name}`]),
    ['provenance', 'Where the figures come from'],
  ];
  return (
    <nav aria-label="Contents">
      {links.map(([id, title]) => (
        <a href={`#${id}`}>{title}</a>
      ))}
    </nav>
  );
}

/** One card an evaluation: its methods' differences, each with its own interval. */
function Headline({ evaluations }: { evaluations: Evaluation[] }) {
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

function EvaluationView({ evaluation, id }: { evaluation: Evaluation; id: string }) {
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

function Examples({ data }: { data: ReportData }) {
  return (
    <section id="examples" aria-labelledby="examples-title">
      <h2 id="examples-title">Examples</h2>
      <p class="lead">
        Each step with its candidates in the policy's order. Bars are Q on one scale an episode, the upright
        mark is V; ▶ marks the candidate that was executed, the ring where it was clicked.
      </p>
      {data.examples.map((example) => (
        <ExampleView example={example} />
      ))}
    </section>
  );
}

/** Metrics as the trainer names them, in words; others are shown by their name. */
const curveTitles: Readonly<Record<string, string>> = {
  'loss/q': 'Loss of Q',
  'loss/v': 'Loss of V',
  'value/q_mean': 'Mean of Q on the batch',
  'value/v_mean': 'Mean of V on the batch',
  'value/adv_mean': 'Mean advantage, Q − V',
  'grad/q_norm': 'Gradient norm of Q, before clipping',
  'grad/v_norm': 'Gradient norm of V, before clipping',
  lr: 'Learning rate',
  'validation/q_auc': 'Held-out episodes: AUC of Q for success',
  'validation/v_auc': 'Held-out episodes: AUC of V for success',
  'validation/q_mean': 'Held-out episodes: mean of Q',
  'validation/v_mean': 'Held-out episodes: mean of V',
  'validation/q_mse': 'Held-out episodes: squared error of Q',
};

function LoopView({ loop, id }: { loop: LearningLoop; id: string }) {
  return (
    <section id={id} aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>Loop {loop.name}</h2>
      <p class="lead">
        Each point is a model trained on everything collected up to then, measured on validation seeds. Where
        the margin was chosen on the same seeds, the point flatters slightly.
      </p>
      <Plot caption="Success against training episodes" svg={learningPlot(loop)} />
    </section>
  );
}

function TrainingView({ training, id }: { training: Training; id: string }) {
  return (
    <section id={id} aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>Training {training.name}</h2>
      <p class="lead">Learning curves as logged; the last step is the model that was used.</p>
      <div class="multiples">
        {training.curves.map((curve) => (
          <Plot caption={curveTitles[curve.metric] ?? curve.metric} svg={curvePlot(curve)} />
        ))}
      </div>
      {training.offline && <OfflineView offline={training.offline} />}
      <details>
        <summary>Settings</summary>
        <Facts facts={training.facts} />
      </details>
    </section>
  );
}

function OfflineView({ offline }: { offline: NonNullable<Training['offline']> }) {
  return (
    <>
      <h3>On held-out episodes</h3>
      <table>
        <thead>
          <tr>
            {offline.head.map((name) => (
              <th scope="col">{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {offline.rows.map(([name, ...figures]) => (
            <tr>
              <th scope="row">{name}</th>
              {figures.map((figure) => (
                <td>{figure}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {offline.notes.map((note) => (
        <p>{note}</p>
      ))}
    </>
  );
}

function CollectionView({ collection, id }: { collection: Collection; id: string }) {
  const rate = collection.episodes > 0 ? collection.successes / collection.episodes : null;
  return (
    <section id={id} aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>Episodes {collection.name}</h2>
      <p class="lead">
        {integer(collection.episodes)} episodes, {integer(collection.transitions)} transitions,{' '}
        {percent(rate)} successful.
      </p>
      <Plot caption="Success of the collected episodes by task" svg={collectionPlot(collection)} />
    </section>
  );
}

function ProvenanceView({ provenance }: { provenance: Provenance[] }) {
  return (
    <section id="provenance" aria-labelledby="provenance-title">
      <h2 id="provenance-title">Where the figures come from</h2>
      {provenance.map((block) => (
        <details>
          <summary>
            {block.name} <span class="muted">{block.path}</span>
          </summary>
          <Facts facts={block.facts} />
        </details>
      ))}
    </section>
  );
}

function Facts({ facts }: { facts: readonly [string, string][] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </>
      ))}
    </dl>
  );
}

function Plot({ caption, svg }: { caption: string; svg: string }) {
  return (
    <figure>
      <figcaption>{caption}</figcaption>
      <div dangerouslySetInnerHTML={{ __html: svg }} />
    </figure>
  );
}

function evaluationTitle(evaluation: Evaluation): string {
  return evaluation.estimand === 'unseen-seeds'
    ? `Unseen seeds of ${evaluation.tasks.length} training tasks`
    : `${evaluation.tasks.length} unseen tasks`;
}

function estimandName(evaluation: Evaluation): string {
  return evaluation.estimand === 'unseen-seeds' ? 'unseen seeds' : 'unseen tasks';
}
