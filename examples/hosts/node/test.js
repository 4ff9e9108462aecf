// The tests of the glue: node --expose-gc test.js, with WEIR_NODE and WEIR_CAMERA.
'use strict';

const assert = require('node:assert');
const test = require('node:test');
const {Worker} = require('node:worker_threads');
const {Var, Queue} = require('./weir.js');
const camera = require(process.env.WEIR_CAMERA);

const PATIENCE_MS = 20000;

async function noFramesAreAlive() {
  for (const deadline = Date.now() + PATIENCE_MS; camera.framesAlive() !== 0; ) {
    assert(Date.now() < deadline, `${camera.framesAlive()} frames were never given back`);
    global.gc();
    await new Promise(setImmediate);
  }
}

test('a view is no copy and keeps its version', () => {
  const v = new Var([1, 2, 3]);
  const first = v.read();
  const same = v.read();
  assert.strictEqual(camera.address(first.values.buffer), camera.address(same.values.buffer));
  assert.strictEqual(v.assign([4, 5, 6]), 2);
  const second = v.read();
  assert.deepStrictEqual([first.version, ...first.values, second.version, ...second.values], [1, 1, 2, 3, 2, 4, 5, 6]);
  first.release();
  assert.deepStrictEqual([first.values.length, ...same.values], [0, 1, 2, 3]);
  assert.strictEqual(new Var([]).read().values.length, 0);
});

test('where buffers of foreign memory are refused, a view is a copy', async () => {
  const v = new Var([0]);
  camera.show(v.native, 5);
  const shown = v.read();
  const copy = v.read({copy: true});
  assert.notStrictEqual(camera.address(shown.values.buffer), camera.address(copy.values.buffer));
  shown.release();
  v.assign([0]);
  await noFramesAreAlive(); // the copy keeps none
  assert.deepStrictEqual([copy.version, ...copy.values], [2, 5, 5, 5, 5]);
});

test('a foreign thread feeds the queue, and its cause arrives', async () => {
  const queue = new Queue(8);
  const thread = camera.start(queue.native, 1000, 'the camera was unplugged');
  let seen = 0;
  for await (const frame of queue) {
    assert.deepStrictEqual([frame.version, ...frame.values], [0, seen, seen, seen, seen]);
    frame.release();
    seen++;
  }
  assert.deepStrictEqual([seen, camera.stop(thread)], [1000, 1000]);
  await assert.rejects(queue.get(), {code: 'WEIR_OUT_OF_RANGE', message: /the camera was unplugged/});
  assert.throws(() => queue.tryPut([1]), {code: 'WEIR_CANCELLED', message: /the camera was unplugged/});
});

test('a close ends the calls that wait', async () => {
  const queue = new Queue(1);
  const waiting = [queue.get(), queue.get(), queue.get()];
  assert.strictEqual(queue.tryPut([7]), true);
  assert.strictEqual((await waiting[0]).values[0], 7);
  assert.deepStrictEqual([queue.tryPut([8]), queue.tryPut([9])], [true, false]);
  queue.close('no more work');
  assert.strictEqual((await waiting[1]).values[0], 8);
  await assert.rejects(waiting[2], {message: /no more work/});
  assert.throws(() => new Queue(0), {code: 'WEIR_INVALID_ARGUMENT'});
});

test('a thousand short threads read', () => {
  assert.strictEqual(camera.shortThreads(new Var([7, 7, 7, 7]).native, 1000), 1000);
});

test('the collector releases what another thread had acquired', async () => {
  await noFramesAreAlive(); // of the tests before
  const queue = new Queue(3);
  const v = new Var([0]);
  camera.show(v.native, 9);
  const thread = camera.start(queue.native, 3, 'over');
  let views = [v.read(), await queue.get(), await queue.get(), await queue.get()];
  camera.stop(thread);
  v.assign([1]);
  global.gc();
  await new Promise(setImmediate);
  assert.deepStrictEqual([camera.framesAlive(), views[0].values[3], views[3].values[3]], [4, 9, 2]);
  views = undefined;
  await noFramesAreAlive();
  assert.strictEqual(camera.releasedBy(), camera.thisThread());
});

test('a worker ends while it waits', async () => {
  const program = `
    const {Queue, Var} = require(${JSON.stringify(require.resolve('./weir.js'))});
    const queue = new Queue(1);
    const view = new Var([1]).read();
    queue.get();
    require('node:worker_threads').parentPort.postMessage(view.values[0]);`;
  const worker = new Worker(program, {eval: true});
  assert.strictEqual(await new Promise((resolve) => worker.once('message', resolve)), 1);
  assert.strictEqual(await worker.terminate(), 1);
});
