-- Queries of one table of page views, of the kinds that ClickBench asks (https://github.com/ClickHouse/ClickBench):
-- counts and sums of everything, of few groups, of very many, of rows that a filter on numbers, dates or texts leaves.

-- q01
SELECT count(*) FROM views;

-- q02
SELECT count(*) FROM views WHERE campaign <> 0;

-- q03
SELECT sum(campaign), count(*), avg(width) FROM views;

-- q04
SELECT avg(user) FROM views;

-- q05
SELECT count(DISTINCT user) FROM views;

-- q06
SELECT count(DISTINCT phrase) FROM views;

-- q07
SELECT min(day), max(day) FROM views;

-- q08
SELECT campaign, count(*) FROM views WHERE campaign <> 0 GROUP BY campaign ORDER BY count(*) DESC;

-- q09
SELECT region, count(DISTINCT user) AS users FROM views GROUP BY region ORDER BY users DESC, region LIMIT 10;

-- q10
SELECT region, sum(campaign), count(*) AS views, avg(width) FROM views GROUP BY region
ORDER BY views DESC, region LIMIT 10;

-- q11
SELECT model, count(DISTINCT user) AS users FROM views WHERE model <> '' GROUP BY model
ORDER BY users DESC, model LIMIT 10;

-- q12
SELECT phrase, count(*) AS views FROM views WHERE phrase <> '' GROUP BY phrase ORDER BY views DESC, phrase LIMIT 10;

-- q13
SELECT system, phrase, count(*) AS views FROM views WHERE phrase <> '' GROUP BY system, phrase
ORDER BY views DESC, system, phrase LIMIT 10;

-- q14
SELECT user, count(*) AS views FROM views GROUP BY user ORDER BY views DESC, user LIMIT 10;

-- q15
SELECT user, phrase, count(*) AS views FROM views GROUP BY user, phrase ORDER BY views DESC, user, phrase LIMIT 10;

-- q16
SELECT user, minute(time) AS m, phrase, count(*) AS views FROM views GROUP BY user, minute(time), phrase
ORDER BY views DESC, user, m, phrase LIMIT 10;

-- q17
SELECT user FROM views WHERE user = 435090932899640;

-- q18
SELECT count(*) FROM views WHERE url LIKE '%/page/77%';

-- q19
SELECT phrase, min(url), count(*) AS views FROM views WHERE url LIKE '%/shop/%' AND phrase <> '' GROUP BY phrase
ORDER BY views DESC, phrase LIMIT 10;

-- q20
SELECT * FROM views WHERE url LIKE '%/page/777%' ORDER BY time, id LIMIT 10;

-- q21
SELECT phrase FROM views WHERE phrase <> '' ORDER BY time, phrase LIMIT 10;

-- q22
SELECT site, avg(length(url)) AS letters, count(*) AS views FROM views WHERE url <> '' GROUP BY site
HAVING count(*) > 1000 ORDER BY letters DESC, site LIMIT 25;

-- q23
SELECT sum(width), sum(width + 1), sum(width + 2), sum(width + 3), sum(width + 4), sum(width + 5) FROM views;

-- q24
SELECT engine, address, count(*) AS views, sum(refresh), avg(width) FROM views WHERE phrase <> ''
GROUP BY engine, address ORDER BY views DESC, engine, address LIMIT 10;

-- q25
SELECT id, address, count(*) AS views, sum(refresh), avg(width) FROM views GROUP BY id, address
ORDER BY views DESC, id LIMIT 10;

-- q26
SELECT url, count(*) AS views FROM views GROUP BY url ORDER BY views DESC, url LIMIT 10;

-- q27
SELECT url, count(*) AS views FROM views
WHERE site = 62 AND day BETWEEN date '2013-07-10' AND date '2013-07-20' AND refresh = 0 AND url <> ''
GROUP BY url ORDER BY views DESC, url LIMIT 10;

-- q28
SELECT width, height, count(*) AS views FROM views
WHERE site = 62 AND day BETWEEN date '2013-07-10' AND date '2013-07-20' AND refresh = 0
GROUP BY width, height ORDER BY views DESC, width, height LIMIT 10;

-- q29
SELECT date_trunc('minute', time) AS m, count(*) AS views FROM views
WHERE site = 62 AND day BETWEEN date '2013-07-14' AND date '2013-07-15' AND refresh = 0
GROUP BY date_trunc('minute', time) ORDER BY m LIMIT 10;
