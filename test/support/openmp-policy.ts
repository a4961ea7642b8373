/** Prints OpenMP's settings as libgomp itself reports them, which it does while it is loaded. */
process.env.OMP_DISPLAY_ENV = 'verbose';
const { buildInfo } = await import('../../ts/native/load.js');
// libgomp writes to stderr.
process.stderr.write = ((chunk: string) => process.stdout.write(chunk)) as typeof process.stderr.write;
buildInfo();
