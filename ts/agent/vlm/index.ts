/** Models behind OpenAI-compatible endpoints: what the rooms that use them need. */
export * from './chat.js';
export { ChatClient, type ChatClientHooks } from './client.js';
export { type Answer, complete, objectOf, usageOf } from './complete.js';
export { Fence } from './fence.js';
export { type AnswerFormat, presetNames } from './presets.js';
export * from './settings.js';
export { openClient, type VlmSetup } from './setup.js';
