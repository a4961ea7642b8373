/** Servers by name: where each listens, whose key it takes, and what its API calls things. */
/** How an answer is held to its form: by a schema, by JSON alone, or by asking for it. */
export const answerFormats = ['json_schema', 'json_object', 'text'] as const;
export type AnswerFormat = (typeof answerFormats)[number];

export interface Preset {
  baseUrl: string;
  /** Environment variable with the key of this service; servers of one's own need none. */
  keyVariable: string | null;
  /** The strictest form of answer that it offers; a refusal steps down from there. */
  format: AnswerFormat;
  /** What it calls the limit on the answer's length. */
  lengthField: 'max_tokens' | 'max_completion_tokens';
  /** llama.cpp reads no WebP and Ollama not always; both formats here are read by all. */
  imageFormat: 'png' | 'jpeg';
}

const own = {
  keyVariable: null,
  format: 'json_schema',
  lengthField: 'max_tokens',
  imageFormat: 'png',
} as const;

export const presets: Readonly<Record<string, Preset>> = {
  openai: {
    ...own,
    baseUrl: 'https://api.openai.com/v1',
    keyVariable: 'OPENAI_API_KEY',
    lengthField: 'max_completion_tokens',
  },
  openrouter: { ...own, baseUrl: 'https://openrouter.ai/api/v1', keyVariable: 'OPENROUTER_API_KEY' },
  vllm: { ...own, baseUrl: 'http://localhost:8000/v1' },
  sglang: { ...own, baseUrl: 'http://localhost:30000/v1' },
  ollama: { ...own, baseUrl: 'http://localhost:11434/v1' },
  'llama.cpp': { ...own, baseUrl: 'http://localhost:8080/v1' },
};

/** Names that `endpoint` takes besides addresses. */
export const presetNames: readonly string[] = Object.keys(presets);

/** For an address of one's own. */
export function addressPreset(baseUrl: string): Preset {
  return { ...own, baseUrl };
}
