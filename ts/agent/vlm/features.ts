/** What an endpoint has been found to allow. It starts with everything, and gives up what is refused. */
import type { AnswerFormat } from './presets.js';
import type { EndpointSettings } from './settings.js';

export interface Features {
  format: AnswerFormat;
  /** Fields for the limit on the answer's length, the first is used; none where both were refused. */
  lengthFields: readonly ('max_tokens' | 'max_completion_tokens')[];
  temperature: boolean;
  /** Token counts at the end of a stream. */
  usage: boolean;
  /** A system message; the templates of some models have none. */
  systemRole: boolean;
}

export function allFeatures({ format, lengthField }: EndpointSettings): Features {
  const other = lengthField === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
  return { format, lengthFields: [lengthField, other], temperature: true, usage: true, systemRole: true };
}

const formatWords =
  /response_?format|json_?(?:schema|object|mode)|structured.?output|guided|grammar|schema|additionalProperties/i;

/**
 * What to try next after a refusal; null where it names nothing that could be left out.
 * @param isExplicit true to go by the refusal's words only; false to try a looser format without a reason
 */
export function stepDown(
  features: Features,
  refusal: string,
  { hasSchema, isExplicit }: { hasSchema: boolean; isExplicit: boolean },
): { features: Features; notice: string } | null {
  const { format, lengthFields, temperature, usage, systemRole } = features;
  if (usage && /stream_options|include_usage/i.test(refusal)) {
    return { features: { ...features, usage: false }, notice: 'token counts are refused, and estimated' };
  }
  if (systemRole && /system (?:role|message|prompt)/i.test(refusal)) {
    return { features: { ...features, systemRole: false }, notice: 'a system message is refused' };
  }
  if (temperature && /temperature/i.test(refusal)) {
    return { features: { ...features, temperature: false }, notice: 'a temperature is refused' };
  }
  if (lengthFields[0] && /max_(?:completion_)?tokens/i.test(refusal)) {
    const rest = lengthFields.slice(1);
    return {
      features: { ...features, lengthFields: rest },
      notice: `${lengthFields[0]} is refused, ${rest[0] ?? 'no limit on the length'} from now on`,
    };
  }
  if (!hasSchema || format === 'text' || (isExplicit && !formatWords.test(refusal))) return null;
  const next = format === 'json_schema' ? 'json_object' : 'text';
  return { features: { ...features, format: next }, notice: `${format} is refused, ${next} from now on` };
}
