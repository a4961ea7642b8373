/**
 * report.html: one file, no script, no network. Components return escaped text by default; the only raw markup is
 * our own style sheet and the SVG that our own plots drew.
 */
import { renderToString } from 'preact-render-to-string';
import type { Collection, LearningLoop, Provenance, ReportData } from './data.js';
import { EvaluationView, evaluationTitle, Headline } from './evaluations.js';
import { ExampleView } from './examples.js';
import { integer, percent } from './format.js';
import { Facts, Plot } from './parts.js';
import { collectionPlot, learningPlot } from './plots.js';
import { styles } from './styles.js';
import { TrainingView } from './trainings.js';

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
