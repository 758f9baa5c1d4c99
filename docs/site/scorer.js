// SPDX-License-Identifier: BSL-1.0
//
// The site's search finds pages that have all words. Sphinx scores such a page by its best word; here every
// word in a heading counts, so that the page that answers a question comes first. tests/docs/search.py does the same.
var Scorer = {
  score: ([page, , , , score]) => {
    const file = Search._index.docnames.indexOf(page);
    const stemmer = new Stemmer();
    const words = splitQuery(new URLSearchParams(window.location.search).get("q") || "")
      .map((word) => word.toLowerCase())
      .filter((word) => stopwords.indexOf(word) === -1)
      .map((word) => stemmer.stemWord(word));
    const isInHeading = (word) => [].concat(Search._index.titleterms[word] ?? []).includes(file);
    return score + new Set(words.filter(isInHeading)).size;
  },
  // Sphinx's own.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
