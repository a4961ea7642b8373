/** From settings to a client, for each role that asks a model. */
import { ChatClient, type ChatClientHooks } from './client.js';
import { type Role, resolveEndpoint, type SettingsSources } from './settings.js';

/** Where the models of an agent are, and who is told about their moods. */
export interface VlmSetup extends SettingsSources {
  hooks?: ChatClientHooks;
}

/** @throws BOQ_VLM_ENDPOINT, BOQ_VLM_KEY */
export function openClient(role: Role, setup: VlmSetup = {}): ChatClient {
  return new ChatClient(resolveEndpoint(role, setup), setup.hooks);
}
