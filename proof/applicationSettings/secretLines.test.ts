import { secretPythonLines } from "../../src/host/applicationSettings/kinds.js";

/** Which lines of the web application's settings no diff shows. */
test.each<[what: string, text: string, hidden: number[]]>([
  ["words", "A = 1\ndb_password = 2\nB = 3\nPRIVATE = 4\n", [2, 4]],
  ["a key, and words that only begin like it", "keyboard = 1\nkeys = 2\nmy_key = 3\nKEY = 4\n", [3, 4]],
  [
    "URLs with a password",
    "A = 'mysql://u:p@h'\nB = 'redis://:p@h'\nC = 'ftp://u:@h'\nD = 'http://u@h:80/'\n",
    [1, 2, 3],
  ],
  ["the whole statement", "A = {\n  'password':\n    1,\n}\nB = 1\n", [1, 2, 3, 4]],
  ["the whole statement, with carriage returns", "A = [\r\n'password',\r\n]\r\nB = 1\r\n", [1, 2, 3]],
  ["a comment below a backslash", 'SECRET_KEY = "ab1-x" \\\n  # was: other\nB = 1\n', [1, 2]],
  ["the whole last statement, without a line end", "A = [\n'password',\n]", [1, 2, 3]],
  ["a comment", "# the token\nA = 1  # its salt\nB = 1\n", [1, 2]],
  ["what repeats the secret key", `SECRET_KEY = 'ab1-x'\nA = "ab1-x"\nB = 2\n# ab1-x\n`, [1, 2, 4]],
  ["one with a prefix", `SECRET_KEY = R'ab1-x'\nA = "ab1-x"\n`, [1, 2]],
  ["one with quotes in it", `SECRET_KEY = 'ab1"x-y'\n# ab1"x-y\nB = 'ab1x-y'\n`, [1, 2]],
  ["one in three quotes", `SECRET_KEY = """ab1-x"""\nA = 'ab1-x'\n`, [1, 2]],
  ["the parts of one", `SECRET_KEY = 'ab1-' "x-2y"\nA = 'ab1-'\n# x-2y\n`, [1, 2, 3]],
  ["one that would hide too much", "SECRET_KEY = 'abc'\nA = 'abc'\n", [1]],
  [
    "the words of an expression are none",
    "SECRET_KEY = environ['ab1-x']\nA = environ\nB = 'ab1-x'\n",
    [1, 3],
  ],
  ["what repeats one that is set in a block", "if A:\n  SECRET_KEY = 'ab1-x'\nB = 'ab1-x'\n", [2, 3]],
  ["the shortest that is looked for", "SECRET_KEY = 'abcd'\nA = 'abcd'\n", [1, 2]],
  ["all of a file that cannot be read", "A = (\nB = 1\n", [1, 2, 3]],
])("%s", (_what, text, hidden) => {
  expect([...secretPythonLines(text)].sort((a, b) => a - b)).toEqual(hidden);
});
