/**
 * The public API of `@boq/native`. Importing it starts no browser and loads neither a model nor libtorch; what
 * needs one of them does so when it is called.
 *
 * The stages, in the order in which data goes through them: {@link collect}, {@link embedRun}, {@link train},
 * {@link evaluate}, {@link writeReport}; {@link runExperiment} is all of them, {@link runAgent} uses what they made.
 *
 * @packageDocumentation
 */

// Actions
export { ActionRegistry, actionsWith, optionalActions, standardActions } from './agent/actions/registry.js';
export {
  type ActionDefinition,
  type ActionSurface,
  actionSchema,
  type ControlInfo,
  elementProperty,
} from './agent/actions/types.js';
// Agent: one task, or one episode of one's own
export { agentEvents } from './agent/agent-events.js';
export { DomainPolicy, type DomainPolicyOptions } from './agent/browser/domain-policy.js';
// Browser
export { PageEnvironment } from './agent/browser/environment.js';
export type { LaunchOptions } from './agent/browser/launch.js';
export { BrowserPool, type PoolOptions } from './agent/browser/pool.js';
export { type Secret, Secrets } from './agent/browser/secrets.js';
export { BrowserSession, type Credentials, type SessionOptions } from './agent/browser/session.js';
export { Budget, type BudgetLimits, defaultPrices, type Price, priceOf } from './agent/budget.js';
export type {
  EpisodeEvent,
  EpisodeLimits,
  EpisodeRecorder,
  EpisodeResult,
  RunEpisodeOptions,
} from './agent/episode.js';
export { type IrreversibleAction, type IrreversibleKind, irreversibleKind } from './agent/irreversible.js';
export { FallbackLocalizer } from './agent/localizer/fallback.js';
export { PageLocalizer } from './agent/localizer/page.js';
export { createLocalizer, localizerNames } from './agent/localizer/registry.js';
export { groundingNames, VlmLocalizer } from './agent/localizer/vlm-localizer.js';
export { runEpisode } from './agent/loop.js';
export { LoopGuard, type LoopGuardOptions } from './agent/loop-guard.js';
export {
  type Method,
  methodOf,
  type PlayContext,
  type Player,
  type Rule,
  type RuleContext,
} from './agent/methods/method.js';
export { createMethod, ruleNames } from './agent/methods/registry.js';
export { type Replay, type ReplayStep, replayThen, stateSignature } from './agent/methods/replay.js';
export { PagePolicy, type PagePolicyOptions } from './agent/policy/page.js';
export { createPolicy, type PolicySettings, policyNames, type VlmChoice } from './agent/policy/registry.js';
export { type ProposalStyle, VlmPolicy, type VlmPolicyOptions } from './agent/policy/vlm-policy.js';
export type { PromptSettings } from './agent/policy/vlm-prompt.js';
export {
  type AgentOptions,
  type AgentPreview,
  type AgentSummary,
  previewAgent,
  runAgent,
} from './agent/run-agent.js';
export { argmax, bestOfQ, tieWidth } from './agent/selectors/best-of-q.js';
export { epsilonGreedy } from './agent/selectors/epsilon-greedy.js';
export { first } from './agent/selectors/first.js';
export { lowerBound } from './agent/selectors/lower-bound.js';
export { majority } from './agent/selectors/majority.js';
export { type Picker, pickerSelector, wordPicker } from './agent/selectors/picker.js';
export { prompting } from './agent/selectors/prompting.js';
export { random } from './agent/selectors/random.js';
export { createSelector, selectorNames } from './agent/selectors/registry.js';
export { vlmPicker } from './agent/selectors/vlm-picker.js';
export type {
  Consequence,
  Critic,
  Decision,
  Environment,
  Episode,
  HistoryEntry,
  Localizer,
  Observation,
  PageElement,
  ProposalEvent,
  ProposeRequest,
  Proposer,
  Screenshot,
  Selector,
  SelectRequest,
  StepScoring,
  Verdict,
} from './agent/types.js';
// Models behind OpenAI-compatible endpoints
export {
  type AnswerFormat,
  ChatClient,
  type ChatClientHooks,
  type ChatEvent,
  type ChatMessage,
  type ChatRequest,
  type EndpointOptions,
  type EndpointSettings,
  type EndReason,
  type JsonSchema,
  openClient,
  type Part,
  presetNames,
  type Role,
  readVlmFile,
  resolveEndpoint,
  type SettingsSources,
  type VlmFile,
  type VlmSetup,
} from './agent/vlm/index.js';
export type { WindowOptions } from './agent/window.js';

// Errors and randomness
export {
  BoqError,
  type BoqErrorCode,
  type BoqErrorOptions,
  hostErrorCodes,
  isBoqError,
  nativeErrorCodes,
} from './core/errors.js';
export { hashUniform, type RandomKey, type RandomSource, randomSource } from './core/random.js';

// Evaluation
export { benchmarkNames, openBenchmark } from './evaluation/benchmarks/registry.js';
export type { Benchmark } from './evaluation/benchmarks/types.js';
export { type CollectOptions, type CollectSummary, collect } from './evaluation/collect.js';
export {
  type EvaluatedWith,
  type EvaluateOptions,
  type EvaluateSummary,
  evaluate,
} from './evaluation/evaluate.js';
export type { Experiment } from './evaluation/experiment.js';
export { LoopBudget, type LoopLimits, parseLimits } from './evaluation/loop/budget.js';
export { type CurvePoint, readCurve } from './evaluation/loop/curve.js';
export {
  type IterateOptions,
  type IterateResult,
  type LoopProgress,
  runLoop,
} from './evaluation/loop/iterate.js';
export { type LoopPlan, paperLoop } from './evaluation/loop/plan.js';
export { RealStages } from './evaluation/loop/stages.js';
export type { LoopStages } from './evaluation/loop/types.js';
export { keptMargin } from './evaluation/margin.js';
export {
  constantModel,
  ModelSet,
  type ModelSetOptions,
  newestModel,
  type OpenModel,
} from './evaluation/models.js';
export {
  type EvaluatedEntry,
  type EvaluatedModel,
  type ResultRow,
  type Results,
  readResults,
} from './evaluation/results.js';
export {
  type ExperimentOptions,
  type ExperimentProgress,
  type ExperimentResult,
  runExperiment,
} from './evaluation/run-experiment.js';
export type { PlanFault, PlanProgress } from './evaluation/runner.js';
export type { EpisodeOptions, PolicyChoice, SeedRange } from './evaluation/stage.js';
export {
  clusteredInterval,
  type Interval,
  type Sample,
  stratifiedInterval,
} from './evaluation/statistics.js';
export type { Estimand, SelectorSummary } from './evaluation/summary.js';
export type { TreeShape } from './evaluation/tree/branches.js';
export {
  defaultShape,
  type ExploreOptions,
  type ExploreSummary,
  explore,
} from './evaluation/tree/explore.js';
export {
  type ChooseMarginOptions,
  chooseModelMargin,
  type ValidationOptions,
} from './evaluation/validation.js';

// Embedding, training, scoring
export { type Backup, type BackupOptions, backups } from './learning/backup.js';
export { hubCacheFolder, resolveCheckpoint } from './learning/checkpoints.js';
export { type CachedVector, ContentCache, defaultCacheFolder } from './learning/content-cache.js';
export {
  ConstantCritic,
  type CriticCandidate,
  type CriticEmbedder,
  type CriticScorer,
  type CriticState,
  type CriticStep,
  QCritic,
} from './learning/critic.js';
export {
  type EmbedProgress,
  type EmbedRunOptions,
  type EmbedRunResult,
  embedRun,
  type RunEmbedder,
} from './learning/embed-run.js';
export {
  Embedder,
  type EmbedderOptions,
  type EmbedRequest,
  type EmbedResult,
  type ImageInput,
} from './learning/embedder.js';
export { type EmbeddingManifest, readManifest } from './learning/embedding-manifest.js';
export { type PullOptions, type PullPlan, type PullResult, pullCheckpoint } from './learning/hub.js';
export { type HyperParameter, hyperParameters, type Preset, presets } from './learning/hyper-parameters.js';
export { type LabelSummary, writeLabelFolder } from './learning/label-folder.js';
export type { CalibrationMap, ModelConfig } from './learning/model-card.js';
export {
  type OfflineReport,
  type PickFigures,
  type PredictorFigures,
  readOfflineReport,
} from './learning/offline.js';
export type { EmbedderProfile } from './learning/profile.js';
export { openRunSource, type RunSource } from './learning/run-source.js';
export {
  type ActionView,
  actionPrompt,
  actionViews,
  describeAction,
  image,
  type PastStep,
  type Piece,
  renderChat,
  statePrompt,
  type Turn,
  taskPrompt,
  templateVersion,
} from './learning/templates.js';
export { writeTinyCheckpoint } from './learning/tiny-checkpoint.js';
export {
  type TrainedModel,
  type TrainOptions,
  type TrainPlan,
  type TrainResult,
  train,
} from './learning/train.js';
export {
  describeData,
  findEmbeddings,
  newestEmbeddedRun,
  type TrainingData,
} from './learning/training-data.js';
export {
  pythonReference,
  type VerifyOutcome,
  type VerifyResult,
  verify,
  verifyLimits,
} from './learning/verify.js';
export { buildInfo } from './native/load.js';
export { Scorer, type ScorerOptions } from './native/scorer.js';
export type {
  NativeBuildInfo,
  NativeEmbedderInfo,
  NativeEmbedItem,
  NativeReuseCounts,
  NativeReuseOptions,
  NativeScoreBatch,
  NativeScorerInfo,
  NativeScores,
  NativeTrainConfig,
  NativeTrainProgress,
  NativeTrainSummary,
} from './native/surface.js';

// Report
export type { ReportData } from './report/data.js';
export { loadReport, type ReportOptions } from './report/load.js';
export { type WrittenReport, writeReport } from './report/write.js';

// Runs on disk
export * from './store/index.js';
