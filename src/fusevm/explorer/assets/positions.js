// Which letter of the sequence each step was: those within brackets run in rounds, and some run unasked.

const FIRST = ["h", "g", "f", "o"]; // run before every sequence, after names were made unique
const BETWEEN = "g"; // runs after the sequence, and after its cleanup
const MOST_ROUNDS = 20;

function parsed(letters) {
  const levels = [[]];
  letters.forEach((letter, position) => {
    if (letter === "[") levels.push([]);
    else if (letter === "]" && levels.length > 1) {
      const inner = levels.pop();
      levels[levels.length - 1].push(inner);
    } else levels[levels.length - 1].push({ letter, position });
  });
  return levels[0];
}

// The position of every step in the sequence without blanks; -1 for those that are not of it.
export function positionsOf(sequence, steps) {
  const found = steps.map(() => -1);
  let at = steps.findIndex((step) => !step.letter) + 1;
  for (const letter of FIRST) if (steps[at] && steps[at].letter === letter) at++;
  const walk = (items) => {
    for (const item of items) {
      if (Array.isArray(item)) rounds(item);
      else if (item.letter === ":") at += Number(Boolean(steps[at] && steps[at].letter === BETWEEN));
      else if (steps[at] && steps[at].letter === item.letter) found[at++] = item.position;
      else return false;
    }
    return true;
  };
  const rounds = (items) => {
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const start = at;
      if (walk(items) && at > start) continue;
      found.fill(-1, start);
      at = start;
      return;
    }
  };
  walk(parsed([...sequence].filter((letter) => letter.trim())));
  return found;
}
