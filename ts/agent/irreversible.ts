/**
 * Which actions cannot be taken back: paying, deleting, sending. Judged by the words of the control that would be
 * pressed, as the page names it and as the policy does; a control that says something else than it does is not seen
 * through.
 */
import type { Action } from '../store/types.js';
import type { Consequence } from './types.js';

/** What a control may do that cannot be undone. */
export const irreversibleKinds = ['pay', 'delete', 'send'] as const;
/** One of {@link irreversibleKinds}. */
export type IrreversibleKind = (typeof irreversibleKinds)[number];

/** What somebody is asked to confirm. */
export interface IrreversibleAction {
  kind: IrreversibleKind;
  action: Action;
  /** The control in words, as the page names it; the policy's words where the page has none. */
  target: string;
  url: string;
  /** From 0. */
  step: number;
}

/** English, German, French, Spanish; whole words, or a whole beginning where a star follows. */
const vocabulary: Readonly<Record<IrreversibleKind, string>> = {
  pay:
    'pay buy purchase order checkout check.out place.order book reserve donate transfer withdraw bid subscribe rent ' +
    'bezahl* kaufen bestell* buchen reservieren spenden überweis* abonnieren ' +
    'payer acheter commander réserver virer ' +
    'pagar comprar pedir reservar donar transferir suscribir*',
  delete:
    'delete remove erase discard trash unsubscribe deactivate revoke wipe destroy terminate leave ' +
    'cancel.order cancel.booking cancel.subscription cancel.membership close.account empty.trash ' +
    'löschen entfernen verwerfen kündigen stornieren abbestellen ' +
    'supprimer effacer résilier retirer ' +
    'eliminar borrar suprimir',
  send:
    'send submit post publish tweet share reply forward apply sign confirm invite ' +
    'senden absenden abschicken veröffentlichen teilen antworten bewerben bestätigen ' +
    'envoyer publier partager répondre confirmer ' +
    'enviar publicar compartir responder confirmar',
};

const patterns = irreversibleKinds.map((kind) => {
  const words = vocabulary[kind]
    .split(' ')
    .map((word) => word.replace('.', '\\s+(?:\\S+\\s+)?').replace('*', '\\p{L}*'));
  return { kind, pattern: new RegExp(`(?<![\\p{L}\\p{N}])(?:${words.join('|')})(?![\\p{L}\\p{N}])`, 'iu') };
});

/** Fields whose Enter key sends what they hold, where no button stands beside them. */
const messageField = /message|comment|reply|chat|nachricht|kommentar|message|mensaje|comentario/i;

/** Chosen or filled in, not carried out: a mistake is mended by doing it again. */
const settingRoles =
  /^(?:checkbox|radio|switch|textbox|searchbox|combobox|listbox|option|spinbutton|slider|tab) /;

/**
 * Which kind of irreversible action this looks like.
 * @param consequence what the action would set off, as the page says; null where it was not asked
 * @returns null for what can be taken back, or does not look as if it could not
 */
export function irreversibleKind(action: Action, consequence: Consequence | null): IrreversibleKind | null {
  if (!consequence) return null;
  const { words, isField } = consequence;
  if (isField) return messageField.test(words) ? 'send' : null;
  if (settingRoles.test(`${words} `)) return null;
  const described = action.type === 'click' && typeof action['element'] === 'string' ? action['element'] : '';
  const text = `${words} ${described}`;
  return patterns.find(({ pattern }) => pattern.test(text))?.kind ?? null;
}
