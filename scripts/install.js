/** Runs after `npm install`, which is to bring packages and nothing else. */
process.stderr.write('@boq/native: run `node scripts/setup.js` to fetch libtorch and build the addon.\n');
