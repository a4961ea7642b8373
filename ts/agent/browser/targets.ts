/**
 * Everything that can show a document: tabs, windows that pages open, frames of other sites. Each is caught before
 * its first document runs, gets the page script, and, where its session has rules, asks them before it loads.
 */
import type { Browser, CDPSession } from 'puppeteer';
import { pageScript } from './page-script.js';

/** Whoever owns the documents of one browser context. */
export interface Owner {
  /** Why an address may not be loaded, or null; no address is asked about where this is left out. */
  refuse?: (url: string) => Promise<string | null>;
  /** Name and password for a page that asks for them, or null. */
  credentials?: (url: string) => { username: string; password: string } | null;
  /** Takes what happens, in sentences. */
  note(event: string): void;
}

interface AttachedEvent {
  sessionId: string;
  targetInfo: { targetId: string; type: string; browserContextId?: string };
}

/** Said of the page that is left, when the next one is on its way. */
export const leavingNote = 'the page asked whether to leave it and was answered yes';

const ownContext = 'own';

const ignored = (): undefined => undefined;

export class Targets {
  readonly #root: CDPSession;
  readonly #owners = new Map<string, Owner>();
  /** Owners of tabs, by the id of their main frame. */
  readonly #pages = new Map<string, Owner>();
  /** Frames of other sites, by the id of the target they are in. */
  readonly #frames = new Map<string, Map<string, CDPSession>>();

  private constructor(root: CDPSession) {
    this.#root = root;
  }

  static async watch(browser: Browser): Promise<Targets> {
    const targets = new Targets(await browser.target().createCDPSession());
    targets.#root.on('Browser.downloadWillBegin', ({ frameId, suggestedFilename }) => {
      // Frames inside a tab are not known by their id; with one owner there is no question.
      const [only] = targets.#owners.size === 1 ? targets.#owners.values() : [];
      const owner = targets.#pages.get(frameId) ?? only;
      owner?.note(`the page offered the download "${suggestedFilename}"`);
    });
    await targets.#autoAttach(targets.#root, null);
    return targets;
  }

  /** Names the owner of a browser context, the browser's own one for undefined; call it before its first tab opens. */
  own(contextId: string | undefined, owner: Owner): void {
    this.#owners.set(contextId ?? ownContext, owner);
  }

  release(contextId: string | undefined): void {
    this.#owners.delete(contextId ?? ownContext);
  }

  /** Where downloads go; nowhere for null. Each is told to the owner of the context. */
  async setDownloads(contextId: string | undefined, folder: string | null): Promise<void> {
    await this.#root.send('Browser.setDownloadBehavior', {
      ...(folder === null ? { behavior: 'deny' } : { behavior: 'allow', downloadPath: folder }),
      ...(contextId === undefined ? {} : { browserContextId: contextId }),
      eventsEnabled: true,
    });
  }

  /** Pages that ask for the camera, the place or notifications are told no, instead of waiting for ever. */
  async denyPermissions(contextId: string | undefined): Promise<void> {
    await this.#root.send('Browser.grantPermissions', {
      permissions: [],
      ...(contextId === undefined ? {} : { browserContextId: contextId }),
    });
  }

  /** Frames of other sites inside a target, by frame id. */
  framesIn(targetId: string): ReadonlyMap<string, CDPSession> {
    return this.#frames.get(targetId) ?? new Map<string, CDPSession>();
  }

  async #autoAttach(session: CDPSession, parent: string | null): Promise<void> {
    session.on('Target.attachedToTarget', (event: AttachedEvent) => {
      const child = this.#root.connection()?.session(event.sessionId);
      if (child) this.#welcome(child, event, parent);
    });
    await session.send('Target.setAutoAttach', {
      autoAttach: true,
      waitForDebuggerOnStart: true,
      flatten: true,
      ...(parent === null ? { filter: [{ type: 'page' }] } : {}),
    });
  }

  #welcome(session: CDPSession, { targetInfo }: AttachedEvent, parent: string | null): void {
    const { targetId, type, browserContextId } = targetInfo;
    const document = type === 'page' || type === 'iframe';
    if (document) {
      if (parent !== null) {
        const frames = this.#frames.get(parent) ?? new Map<string, CDPSession>();
        frames.set(targetId, session);
        this.#frames.set(parent, frames);
      }
      session.once('disconnected' as never, () => {
        this.#frames.delete(targetId);
        this.#pages.delete(targetId);
        if (parent !== null) this.#frames.get(parent)?.delete(targetId);
      });
      session.send('Page.enable').catch(ignored);
      session
        .send('Page.addScriptToEvaluateOnNewDocument', { source: pageScript, runImmediately: true })
        .catch(ignored);
      const owner = this.#owners.get(browserContextId ?? ownContext) ?? this.#owners.get(ownContext);
      if (owner && type === 'page') {
        this.#pages.set(targetId, owner);
        this.#answerDialogs(session, owner);
      }
      if (owner?.refuse || owner?.credentials) this.#intercept(session, owner);
      this.#autoAttach(session, targetId).catch(ignored);
    }
    session.send('Runtime.runIfWaitingForDebugger').catch(ignored);
  }

  // Alerts, questions and "leave this page?" are agreed to: the agent decided on the action that raised them.
  #answerDialogs(session: CDPSession, owner: Owner): void {
    session.on('Page.javascriptDialogOpening', ({ type, message, defaultPrompt }) => {
      const words = message.slice(0, 300);
      if (type === 'beforeunload') owner.note(leavingNote);
      else if (type === 'prompt')
        owner.note(`the page showed a prompt "${words}", answered with its default`);
      else
        owner.note(`the page showed ${type === 'alert' ? 'an alert' : 'a confirm'} "${words}", answered OK`);
      const answer = { accept: true, ...(type === 'prompt' ? { promptText: defaultPrompt ?? '' } : {}) };
      session.send('Page.handleJavaScriptDialog', answer).catch(ignored);
    });
  }

  /** Every document is asked about before it is requested; one behind a password gets it, once. */
  #intercept(session: CDPSession, { refuse = async () => null, credentials, note }: Owner): void {
    const refused = (url: string, reason: string): void => {
      note(`${url.slice(0, 200)} was not loaded: ${reason}`);
    };
    session.on('Fetch.requestPaused', ({ requestId, request }) => {
      void (async () => {
        const reason = await refuse(request.url).catch((error: unknown) => String(error));
        if (reason === null) await session.send('Fetch.continueRequest', { requestId });
        else {
          refused(request.url, reason);
          await session.send('Fetch.failRequest', { requestId, errorReason: 'BlockedByClient' });
        }
      })().catch(ignored);
    });
    // A visible browser would wait for a person here.
    const answered = new Set<string>();
    session.on('Fetch.authRequired', ({ requestId, request, authChallenge }) => {
      const known = authChallenge.source === 'Server' ? (credentials?.(request.url) ?? null) : null;
      const isWrong = answered.has(requestId);
      if (isWrong) note(`${new URL(request.url).host} did not take the name and password it was given`);
      else if (!known) note(`${authChallenge.origin} asked for a name and a password; none is set for it`);
      answered.add(requestId);
      const authChallengeResponse =
        known && !isWrong
          ? { response: 'ProvideCredentials' as const, ...known }
          : { response: 'CancelAuth' as const };
      session.send('Fetch.continueWithAuth', { requestId, authChallengeResponse }).catch(ignored);
    });
    // Addresses that no request is made for: the browser would show them without asking.
    const local = /^(?:data|blob|filesystem|file|chrome|devtools|view-source|javascript|about):/i;
    session.on('Page.frameNavigated', ({ frame }) => {
      const { url, id } = frame;
      if (!local.test(url) || /^about:(?:blank|srcdoc)/.test(url)) return;
      void (async () => {
        const reason = await refuse(url);
        if (reason === null) return;
        refused(url, reason);
        await session.send('Page.navigate', { url: 'about:blank', frameId: id });
      })().catch(ignored);
    });
    session
      .send('Fetch.enable', {
        handleAuthRequests: true,
        patterns: [{ urlPattern: '*', resourceType: 'Document', requestStage: 'Request' }],
      })
      .catch(ignored);
  }
}
