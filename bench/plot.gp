# plot.gp - ring throughput by shape, from a file that weir-bench --csv wrote.
#
#   gnuplot -c bench/plot.gp bench/results/NAME.csv docs/rings.svg
#
# One group of bars per shape (producers/consumers), one bar per contender, medians.
input = ARG1
output_file = ARG2
set terminal svg size 900,420 dynamic background "#ffffff" font "sans-serif,13"
set output output_file
set datafile separator ","
set title "Bounded queues of 64-bit values, capacity 1024: million items a second (higher is better)"
set style data histograms
set style histogram clustered gap 1.5
set style fill solid 0.9 noborder
set grid ytics lc rgb "#dddddd"
set border 3
set tics nomirror out
set yrange [0:*]
set key outside right top
set xlabel "producers/consumers"
shape = "< awk -F, -v c='%s' 'BEGIN { split(\"1/1 2/2 4/4 8/8\", s, \" \") } $1 == \"ring\" && $3 == c { m[$2] = $6 } END { for (i = 1; i <= 4; i++) print s[i] \",\" m[s[i]] }' %s"
names = system("awk -F, '$1 == \"ring\" && $2 == \"1/1\" { gsub(\" \", \"~\", $3); print $3 }' ".input)
name(i) = system("echo '".word(names, i)."' | tr '~' ' '")
colors = "#0b6e4f #6bbf9a #c8553d #f28f3b #588b8b #8d8d8d #444444"
plot for [i = 1:words(names)] sprintf(shape, name(i), input) using 2:xtic(1) title name(i) noenhanced lc rgb word(colors, i)
