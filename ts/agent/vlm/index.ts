/** Models behind OpenAI-compatible endpoints: what the rooms that use them need. */
export * from './chat.js';
export { ChatClient, type ChatClientHooks } from './client.js';
export { presetNames } from './presets.js';
export * from './settings.js';
