/**
 * Sets of MiniWoB++ tasks. @all is BrowserGym's 125, in its split (browsergym/experiments, metadata/miniwob.csv);
 * the five it leaves out need reactions in real time.
 */

const words = (text: string): string[] => text.trim().split(/\s+/);

const demoTrain = words(`
  click-button click-tab click-test-2 click-checkboxes click-link choose-list click-dialog-2 enter-text
  enter-text-dynamic login-user email-inbox-delete email-inbox-reply email-inbox-important email-inbox-noscroll
  use-autocomplete-nodelay click-option click-menu click-scroll-list click-collapsible-nodelay
  click-collapsible-2-nodelay click-tab-2 click-shape search-engine social-media phone-book click-widget
  navigate-tree focus-text circle-center scroll-text-2`);

const demoUnseen = words(`
  enter-password login-user-popup click-tab-2-hard click-tab-2-easy email-inbox-star-reply email-inbox
  click-checkboxes-soft click-checkboxes-large click-checkboxes-transfer click-test-transfer click-menu-2
  click-collapsible click-collapsible-2 buy-ticket click-color unicode-test focus-text-2 choose-date-easy
  multi-layouts enter-text-2 form-sequence-3 sign-agreement`);

const train = words(`
  book-flight book-flight-nodelay buy-ticket choose-date choose-date-easy choose-date-medium
  choose-date-nodelay circle-center click-checkboxes click-checkboxes-large click-checkboxes-soft
  click-checkboxes-transfer click-collapsible click-collapsible-2 click-collapsible-2-nodelay
  click-collapsible-nodelay click-dialog click-dialog-2 click-option click-shades click-test-2
  click-test-transfer count-shape daily-calendar drag-box drag-items drag-shapes drag-shapes-2
  drag-single-shape drag-sort-numbers draw-circle draw-line enter-date enter-password enter-text enter-text-2
  enter-text-dynamic enter-time find-midpoint focus-text focus-text-2 form-sequence identify-shape login-user
  login-user-popup multi-layouts multi-orderings navigate-tree odd-or-even read-table read-table-2
  search-engine text-editor text-transform unicode-test use-autocomplete use-autocomplete-nodelay
  use-colorwheel use-colorwheel-2 use-slider use-slider-2 visual-addition`);

const test = words(`
  ascending-numbers bisect-angle choose-list click-button click-button-sequence click-color click-link
  click-menu click-menu-2 click-pie click-pie-nodelay click-scroll-list click-shape click-tab click-tab-2
  click-tab-2-easy click-tab-2-hard click-tab-2-medium click-test click-widget copy-paste copy-paste-2
  count-sides drag-circle drag-cube drag-items-grid email-inbox email-inbox-delete email-inbox-forward
  email-inbox-forward-nl email-inbox-forward-nl-turk email-inbox-important email-inbox-nl-turk
  email-inbox-noscroll email-inbox-reply email-inbox-star-reply find-greatest find-word form-sequence-2
  form-sequence-3 generate-number grid-coordinate guess-number highlight-text highlight-text-2 hot-cold
  number-checkboxes order-food phone-book resize-textarea right-angle scroll-text scroll-text-2 sign-agreement
  simple-algebra simple-arithmetic social-media social-media-all social-media-some stock-market terminal
  tic-tac-toe use-spinner`);

// For the loop: what clicks, scrolling and typing can solve, near-copies on one side. docs/benchmarks/selection.md has what
// the page policy solves of each.
const loopText = words(`
  choose-list click-button click-button-sequence click-dialog click-dialog-2 click-link click-option
  click-scroll-list click-test click-test-2 click-test-transfer email-inbox email-inbox-delete
  email-inbox-forward email-inbox-forward-nl email-inbox-forward-nl-turk email-inbox-important
  email-inbox-nl-turk email-inbox-noscroll email-inbox-reply email-inbox-star-reply enter-date enter-password
  enter-text enter-text-2 enter-text-dynamic enter-time scroll-text scroll-text-2 search-engine terminal
  unicode-test`);

const loopFigures = words(`
  ascending-numbers book-flight book-flight-nodelay buy-ticket choose-date choose-date-easy
  choose-date-medium choose-date-nodelay circle-center click-color click-shades click-shape count-shape
  count-sides daily-calendar find-greatest generate-number guess-number hover-shape identify-shape
  multi-layouts multi-orderings navigate-tree number-checkboxes odd-or-even simple-algebra simple-arithmetic
  tic-tac-toe use-autocomplete use-autocomplete-nodelay use-spinner`);

const loopUnseen = words(`
  click-checkboxes click-checkboxes-large click-checkboxes-soft click-checkboxes-transfer click-collapsible
  click-collapsible-2 click-collapsible-2-nodelay click-collapsible-nodelay click-menu click-menu-2
  click-pie click-pie-nodelay click-tab click-tab-2 click-tab-2-easy click-tab-2-hard click-tab-2-medium
  click-widget find-word focus-text focus-text-2 form-sequence form-sequence-2 form-sequence-3
  grid-coordinate login-user login-user-popup order-food phone-book read-table read-table-2 sign-agreement
  social-media social-media-all social-media-some`);

export const miniwobSets: Readonly<Record<string, readonly string[]>> = {
  '@demo-train': demoTrain,
  '@demo-unseen': demoUnseen,
  '@loop-train': [...loopText, ...loopFigures].sort(),
  '@loop-text': loopText,
  '@loop-figures': loopFigures,
  '@loop-unseen': loopUnseen,
  '@train': train,
  '@test': test,
  '@all': [...train, ...test].sort(),
};
