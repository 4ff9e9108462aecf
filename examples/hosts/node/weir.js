// Weir in Node.js: variables that are read in place, and queues of their values. The native half is weir.c.
//
// A value is a Float64Array. JavaScript has no read-only arrays: a program must not write to the values of a view, because
// all readers see this memory.
'use strict';

const native = require(process.env.WEIR_NODE ?? './weir.node');

/** A value: a version of a variable, or an item of a queue, whose version is 0. It stays as it is until it is collected. */
class View {
  constructor({buffer, version}) {
    this.values = new Float64Array(buffer);
    this.version = version;
  }

  /** Lets the value go now. Arrays that show it have no elements from now on. */
  release() {
    native.detach(this.values.buffer);
  }
}

class Var {
  constructor(values) {
    this.native = native.varCreate(Float64Array.from(values));
  }

  /** The newest version. Never waits. Where buffers of foreign memory are refused, or on request, it is a copy. */
  read({copy = false} = {}) {
    return new View(native.varRead(this.native, copy));
  }

  /** Publishes the next version, and returns its number. */
  assign(values) {
    return native.varAssign(this.native, Float64Array.from(values));
  }
}

class Queue {
  #readable; // the promise of the calls that wait

  constructor(capacity) {
    this.native = native.queueCreate(capacity);
  }

  /** Returns whether there was room. Throws the cause if the queue is closed: error.code is 'WEIR_CANCELLED'. */
  tryPut(values) {
    return native.queueTryPut(this.native, Float64Array.from(values));
  }

  /** Waits in the event loop. Rejects with the cause if the queue is closed and empty: error.code is 'WEIR_OUT_OF_RANGE'. */
  async get({copy = false} = {}) {
    for (;;) {
      const view = native.queueTryGet(this.native, copy);
      if (view !== undefined) return new View(view);
      this.#readable ??= new Promise((resolve) => native.queuePoll(this.native, resolve)).then(() => (this.#readable = undefined));
      await this.#readable;
    }
  }

  /** The items up to the close of the queue. */
  async *[Symbol.asyncIterator]() {
    for (;;) {
      try {
        yield await this.get();
      } catch (error) {
        if (error.code === 'WEIR_OUT_OF_RANGE') return;
        throw error;
      }
    }
  }

  /** Lets no item in any more. What is inside comes out. */
  close(cause) {
    native.queueClose(this.native, cause);
  }
}

module.exports = {Var, Queue, View};
