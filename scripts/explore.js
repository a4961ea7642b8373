#!/usr/bin/env node
import { run } from './lib/run.js';

await run('explore');
