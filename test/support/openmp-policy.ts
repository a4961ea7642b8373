/** Makes libgomp report its settings on stderr, which it does while it is loaded. */
process.env.OMP_DISPLAY_ENV = 'verbose';
const { buildInfo } = await import('../../ts/native/load.js');
buildInfo();
