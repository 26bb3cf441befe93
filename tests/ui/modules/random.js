// Random values for tests, the same in each run.

/** Return a generator of numbers in [0, 1) (mulberry32). @param {number} seed */
export function generator(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Call a function with generators of many seeds; name the seed of a failure. @param {number} count @param {(random: () => number) => void} check */
export function forSeeds(count, check) {
  for (let seed = 0; seed < count; seed++) {
    try { check(generator(seed)); } catch (error) { throw new Error(`seed ${seed}: ${error.message}`, { cause: error }); }
  }
}
