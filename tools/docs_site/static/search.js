// Finds the pages that fit what somebody typed or pasted. A word counts the more, the fewer pages
// have it; a word that no page has (a path, a number) counts nothing.
function gpucheckSearch(pages) {
  "use strict";
  // Chosen by the order in which readers want them: a page that knows the very message, then one
  // whose title says it, then a heading, then any page that has the words.
  var LINE = 4, TITLE = 2, HEADING = 1, TEXT = 1;
  var PROJECT = /^(docs\/(architecture|evidence|decisions|glossary|machines|translations|verified-on)|CHANGELOG|CONTRIBUTING|SECURITY)/;

  // Words of Latin letters and digits, and pairs of Chinese characters, which most words are. "+cpu"
  // is the end of a version. Long names, as compilers make them, are told apart by their beginnings.
  function terms(text) {
    var found = [];
    (text.toLowerCase().match(/\+?[a-z0-9_]+|[\u4e00-\u9fff]+/g) || []).forEach(function (run) {
      if (run < "\u4e00") {
        found.push(run.length > 4 ? run.replace(/(es|s|ing|ed)$/, "").slice(0, 20) : run);
      } else if (run.length === 1) {
        found.push(run);
      } else {
        for (var at = 0; at + 1 < run.length; at++) { found.push(run.slice(at, at + 2)); }
      }
    });
    return found;
  }

  function field(text, worth) {
    var list = terms(text);
    return { text: text, worth: worth, list: list, set: new Set(list) };
  }

  var read = pages.map(function (page) {
    return {
      at: page.at, title: field(page.title), text: field(page.text),
      heads: page.heads.map(function (text) { return field(text, 1); }),
      lines: page.lines.map(function (line) { return field(line[0], line[1]); }),
      worth: PROJECT.test(page.at) ? 0.5 : 1
    };
  });
  var pagesWith = new Map();
  read.forEach(function (page) {
    var all = new Set();
    [page.title, page.text].concat(page.heads, page.lines).forEach(function (part) {
      part.set.forEach(function (term) { all.add(term); });
    });
    all.forEach(function (term) { pagesWith.set(term, (pagesWith.get(term) || 0) + 1); });
  });

  // A number says little, be it of a version or of a process; one of three digits is an error. The
  // end of a version, "+cpu", says which build it is.
  function weight(term) {
    var count = pagesWith.get(term);
    var kind = term[0] === "+" ? 2 : /^\d+$/.test(term) && term.length !== 3 ? 0.4 : 1;
    return count ? kind * Math.log(1 + read.length / count) : 0;
  }

  function total(set) {
    var sum = 0;
    set.forEach(function (term) { sum += weight(term); });
    return sum;
  }

  function pairs(list) {
    var found = new Set();
    for (var at = 0; at + 1 < list.length; at++) { found.add(list[at] + " " + list[at + 1]); }
    return found;
  }

  // How well a short text fits: the share of the query that it has, the share of it that the query
  // has, and whether the words stand in the same order. 1 is the same text.
  function fit(part, query) {
    var both = 0;
    part.set.forEach(function (term) { if (query.set.has(term)) { both += weight(term); } });
    if (!both) { return 0; }
    var recall = both / query.total, precision = both / total(part.set);
    var order = 1, own = pairs(part.list);
    if (own.size) {
      var same = 0;
      own.forEach(function (pair) { if (query.pairs.has(pair)) { same++; } });
      order = 0.6 + 0.4 * same / own.size;
    }
    return order * 2 * recall * precision / (recall + precision);
  }

  function best(parts, query) {
    var found = { score: 0, text: "" };
    parts.forEach(function (part) {
      var score = part.worth * fit(part, query);
      if (score > found.score) { found = { score: score, text: part.text }; }
    });
    return found;
  }

  function share(part, query) {
    var both = 0;
    query.set.forEach(function (term) { if (part.set.has(term)) { both += weight(term); } });
    return both / query.total;
  }

  // The part of a text that has most of the query.
  function excerpt(text, query) {
    var LONG = 220, words = text.split(" "), score = -1, from = 0, marks;
    marks = words.map(function (word) {
      return terms(word).reduce(function (sum, term) {
        return sum + (query.set.has(term) ? weight(term) : 0);
      }, 0);
    });
    for (var at = 0; at < words.length; at += 5) {
      var sum = 0;
      for (var next = at; next < Math.min(words.length, at + 30); next++) { sum += marks[next]; }
      if (sum > score) { score = sum; from = at; }
    }
    var cut = words.slice(from, from + 40).join(" ");
    if (cut.length > LONG) { cut = cut.slice(0, cut.lastIndexOf(" ", LONG) + 1 || LONG) + "…"; }
    return (from ? "… " : "") + cut;
  }

  return function (text) {
    var query = field(text.slice(0, 4000));
    query.total = total(query.set);
    query.pairs = pairs(query.list);
    if (!query.total) { return []; }
    return read.map(function (page) {
      var line = best(page.lines, query), head = best(page.heads, query);
      var score = page.worth * (LINE * line.score + TITLE * fit(page.title, query) +
        HEADING * head.score + TEXT * share(page.text, query));
      return { page: page, score: score, line: line };
    }).filter(function (one) {
      return one.score > 0.3;
    }).sort(function (one, other) {
      return other.score - one.score || (one.page.at < other.page.at ? -1 : 1);
    }).slice(0, 20).map(function (one) {
      var isLine = one.line.score > 0.3;
      return {
        at: one.page.at, title: one.page.title.text, score: one.score, isLine: isLine,
        excerpt: isLine ? one.line.text : excerpt(one.page.text.text, query)
      };
    });
  };
}

function gpucheckShow(place, query, pages) {
  "use strict";
  var found = query ? gpucheckSearch(pages)(query) : [];
  place.querySelector(".search-none").hidden = !query || found.length > 0;
  var list = place.querySelector("ol");
  found.forEach(function (one) {
    var item = document.createElement("li"), link = document.createElement("a");
    var words = document.createElement(one.isLine ? "code" : "span");
    link.href = one.at;
    link.textContent = one.title;
    words.textContent = one.excerpt;
    words.className = "search-excerpt";
    item.append(link, words);
    list.append(item);
  });
}
