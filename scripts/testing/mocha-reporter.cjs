/**
 * Mocha's own `spec` output, and one line a test into the file BOQ_TEST_RECORD as soon as its result is known: counts
 * survive a crash of the process. The line `end` says that the run was not cut off.
 */
const { appendFileSync } = require('node:fs');
const { reporters, Runner } = require('mocha');

module.exports = class RecordingReporter extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    const record = (line) => appendFileSync(process.env.BOQ_TEST_RECORD, `${line}\n`);
    const { EVENT_TEST_PASS, EVENT_TEST_FAIL, EVENT_RUN_END } = Runner.constants;
    runner.on(EVENT_TEST_PASS, (test) => record(`pass ${test.fullTitle()}`));
    runner.on(EVENT_TEST_FAIL, (test) => record(`fail ${test.fullTitle()}`));
    runner.on(EVENT_RUN_END, () => record('end'));
  }
};
