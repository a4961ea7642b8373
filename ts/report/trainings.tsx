/** Trainings: learning curves, figures on held-out episodes, settings. */
import type { Training } from './data.js';
import { Facts, Plot } from './parts.js';
import { curvePlot } from './plots.js';

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

/** One training: its learning curves, what its model is worth on held-out episodes, and its settings. */
export function TrainingView({ training, id }: { training: Training; id: string }) {
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
