// The browser is found or installed by scripts/setup.js, never as a side effect of `npm install`.
module.exports = { skipDownload: true };
