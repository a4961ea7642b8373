/** Episodes step by step: what the policy offered, what the values said, what was done. */

import { describeAction } from '../learning/templates.js';
import type { Outcome } from '../store/types.js';
import { type Example, type ExampleStep, isOverride } from './data.js';

const outcomes: Record<Outcome, { glyph: string; words: string; style: string }> = {
  success: { glyph: '✓', words: 'success', style: 'success' },
  failure: { glyph: '✕', words: 'failure', style: 'failure' },
  answered: { glyph: '?', words: 'answered, not judged', style: 'limit' },
  'no-answer': { glyph: '✕', words: 'no answer', style: 'failure' },
  stuck: { glyph: '✕', words: 'stuck', style: 'failure' },
  'step-limit': { glyph: '◑', words: 'step limit', style: 'limit' },
  'time-limit': { glyph: '◑', words: 'time limit', style: 'limit' },
  budget: { glyph: '◑', words: 'budget spent', style: 'limit' },
};

export function ExampleView({ example }: { example: Example }) {
  const { record, baseline } = example;
  const scale = episodeScale(example.steps);
  return (
    <article class="example">
      <h3>
        {example.heading} · {example.label} <OutcomeMark outcome={record.outcome} />
      </h3>
      <p class="muted">{example.reason}</p>
      <p class="instruction">{record.instruction}</p>
      {example.steps.map((step) => (
        <StepView step={step} scale={scale} />
      ))}
      {example.omittedSteps > 0 && <p class="muted">{example.omittedSteps} later steps are left out.</p>}
      {baseline && (
        <details>
          <summary>
            The same episode under {baseline.label} <OutcomeMark outcome={baseline.record.outcome} />
          </summary>
          <ol>
            {baseline.actions.map((action) => (
              <li>{action}</li>
            ))}
          </ol>
        </details>
      )}
    </article>
  );
}

function OutcomeMark({ outcome }: { outcome: Outcome }) {
  const { glyph, words, style } = outcomes[outcome];
  return (
    <span class={`outcome ${style}`}>
      {glyph} {words}
    </span>
  );
}

function StepView({ step, scale }: { step: ExampleStep; scale: (value: number) => number }) {
  return (
    <div class="step">
      <Shot step={step} />
      <div>
        <h3>
          Step {step.index + 1}
          {isOverride(step) && <span class="tag method">first candidate overridden</span>}
        </h3>
        <ol class="candidates">
          {step.candidates.map((candidate, index) => {
            const q = step.scores?.q[index];
            return (
              <li class={index === step.chosen ? 'chosen' : ''}>
                <span>{index === step.chosen ? '▶' : ''}</span>
                <span>
                  {describeAction(candidate.action)}
                  {index === step.chosen && <span hidden> (executed)</span>}
                </span>
                {q === undefined ? (
                  <span />
                ) : (
                  <span class="value">
                    <span
                      class="bar"
                      role="img"
                      aria-label={`Q ${q.toFixed(3)}, V ${step.scores!.v.toFixed(3)}`}
                    >
                      <i style={{ width: `${scale(q)}%` }} />
                      <b style={{ left: `${scale(step.scores!.v)}%` }} />
                    </span>
                    <span class="number">{q.toFixed(3)}</span>
                  </span>
                )}
                <span class="thought">
                  {candidate.thought}
                  {candidate.note && ` Note: ${candidate.note}`}
                </span>
              </li>
            );
          })}
        </ol>
        <p class="result">
          {step.ok ? 'Result' : 'Did not work'}: {step.result}
        </p>
      </div>
    </div>
  );
}

function Shot({ step }: { step: ExampleStep }) {
  const { point, viewport } = step;
  if (!step.image) return <div class="shot noshot">The screenshot is not in the run folder.</div>;
  return (
    <div class="shot">
      <img src={step.image} alt={`Page before step ${step.index + 1}`} />
      {point && (
        <span
          class="point"
          style={{
            left: `${(100 * point.x) / viewport.width}%`,
            top: `${(100 * point.y) / viewport.height}%`,
          }}
        />
      )}
    </div>
  );
}

/** Percent of the bar for a value, one scale for the whole episode that always contains 0. */
function episodeScale(steps: readonly ExampleStep[]): (value: number) => number {
  const values = steps.flatMap((step) => (step.scores ? [...step.scores.q, step.scores.v] : []));
  const low = Math.min(0, ...values);
  const span = Math.max(1e-9, Math.max(0, ...values) - low);
  return (value) => (100 * (value - low)) / span;
}
