#!/bin/sh
# Our optimum against other people's solvers: random chains are written as integer programs (free
# MPS), random programs are built in Lua, and both are solved by glpsol and cbc, where they are
# installed. Without them nothing is compared.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# chain SEED: a random instance of 8 to 19 layers on 2 to 4 stages
chain() {
    awk -v seed="$1" 'BEGIN {
        srand(seed); L = 8 + int(12 * rand()); S = 2 + int(3 * rand())
        printf "{\"format\": \"hetviz.partition/1\", \"kind\": \"chain\", \"layers\": %d, ", L
        printf "\"stages\": %d, \"min_layers\": 1, \"objective\": \"minmax\", \"time_ms\": [", S
        for (s = 0; s < S; s++) {
            pace = 1 + 9 * rand(); printf "%s[", s ? ", " : ""
            for (l = 0; l < L; l++) printf "%s%.4f", l ? ", " : "", pace * (0.5 + rand())
            printf "]"
        }
        printf "], \"memory_GiB\": ["
        for (s = 0; s < S; s++) {
            printf "%s[", s ? ", " : ""
            for (l = 0; l < L; l++) printf "%s1", l ? ", " : ""
            printf "]"
        }
        printf "], \"capacity_GiB\": ["
        for (s = 0; s < S; s++) printf "%s%d", s ? ", " : "", L / S + 2 + int(4 * rand())
        printf "], \"comm_ms\": ["
        for (s = 0; s + 1 < S; s++) {
            printf "%s[", s ? ", " : ""
            for (l = 0; l < L; l++) printf "%s%.4f", l ? ", " : "", 3 * rand()
            printf "]"
        }
        print "]}"
    }'
}
close() { awk -v x="$1" -v y="$2" 'BEGIN { d = x - y; exit !(x != "" && y != "" && d * d <= 1e-12 * x * x) }'; }

# glpsol and cbc print six to nine digits
near() { awk -v x="$1" -v y="$2" 'BEGIN { d = x - y; exit !(x != "" && y != "" && d * d <= 1e-10 * (1 + x * x)) }'; }

for solver in glpsol cbc; do
    have_program $solver 'the answers of another solver'
done
for seed in 1 2 3 4 5 6 7 8 9 10 11 12; do
    chain $seed >c.json
    expect "chain $seed" 0 solve c.json --json --write-lp c.mps
    want=$(number out objective)
    if command -v glpsol >/dev/null 2>&1; then
        timeout "$HANG" glpsol --freemps c.mps -o glp.out >/dev/null 2>&1
        got=$(sed -n 's/^Objective: .* = \([-+.eE0-9]*\) .*/\1/p' glp.out)
        holds "glpsol agrees on chain $seed" close "$want" "$got"
    fi
    if command -v cbc >/dev/null 2>&1; then
        timeout "$HANG" cbc c.mps solve solution cbc.out >/dev/null 2>&1
        got=$(sed -n 's/^Optimal.* objective value *\([-+.eE0-9]*\).*/\1/p' cbc.out)
        holds "cbc agrees on chain $seed" close "$want" "$got"
    fi
done

# any program from Lua: bounds of both signs, all relations, whole and other variables, minima and maxima
cat >program.lua <<'EOF'
do
    local seed = SEED
    local function below(n)
        seed = (seed * 16807) % 2147483647
        return seed % n
    end
    local sense = below(2) == 0 and "min" or "max"
    local lp, v, cost = hv.opt.lp { sense = sense }, {}, {}
    for j = 1, 8 do
        v[j] = lp:var { lower = -below(3), upper = 1 + below(6), integer = below(3) > 0 }
        cost[v[j]] = below(19) - 9
    end
    lp:objective(cost)
    for _ = 1, 6 do
        local row = {}
        for j = 1, 8 do
            row[v[j]] = below(11) - 4 + below(10) / 16
        end
        lp:row(row, below(2) == 0 and "<=" or ">=", below(9) - 2)
    end
    local r = lp:solve {}
    print("status " .. r.status .. " " .. tostring(r.proven))
    print("value " .. (sense == "max" and -1 or 1) * (r.objective or 0))
    print(lp:text("mps"))
end
EOF
for seed in 11 12 13 14 15 16 17 18 19 20 21 22; do
    sed "s/SEED/$seed/" program.lua >p.lua
    timeout "$HANG" "$HETVIZ" lua <p.lua >out 2>err
    sed -n '/^NAME/,$p' out >p.mps
    status=$(sed -n 's/^status //p' out) want=$(sed -n 's/^value //p' out)
    case $status in
    'optimal true' | 'infeasible false') ok ;;
    *) no "program $seed" "status '$status'" ;;
    esac
    if command -v glpsol >/dev/null 2>&1; then
        timeout "$HANG" glpsol --freemps p.mps -o glp.out >glp.log 2>&1
        if [ "$status" = 'infeasible false' ]; then
            holds "glpsol finds no point either in program $seed" grep -Eqi 'no (primal|integer)? *feasible|infeasible' glp.log
        else
            got=$(sed -n 's/^Objective: .* = \([-+.eE0-9]*\) .*/\1/p' glp.out)
            holds "glpsol agrees on program $seed" near "$want" "$got"
        fi
    fi
    if command -v cbc >/dev/null 2>&1 && [ "$status" != 'infeasible false' ]; then
        timeout "$HANG" cbc p.mps solve solution cbc.out >/dev/null 2>&1
        got=$(sed -n 's/^Optimal.* objective value *\([-+.eE0-9]*\).*/\1/p' cbc.out)
        holds "cbc agrees on program $seed" near "$want" "$got"
    fi
done

# the end of the file name says which format
expect 'LP format' 0 solve c.json --write-lp c.lp
holds 'LP format is no MPS' grep -q '^min:' c.lp
holds 'MPS format is no LP' grep -q '^ROWS' c.mps

# no answer comes with the constraint and by how much
sed 's/"capacity_GiB": \[.*\], "comm/"capacity_GiB": [0.5, 0.5, 0.5, 0.5], "comm/' c.json >d.json
stages=$(number c.json stages)
awk -v s="$stages" '{ r = "0.5"; for (k = 1; k < s; k++) r = r ", 0.5"; sub(/0.5, 0.5, 0.5, 0.5/, r); print }' d.json >e.json
expect 'no room' 1 solve e.json
says 'no room: which layer, how much' err 'layer 1 alone needs 1 .* 0\.5 too little'
sed 's/"min_layers": 1/"min_layers": 10/' c.json >f.json
expect 'too many layers wanted' 1 solve f.json
says 'too many layers wanted: by how much' err 'too few'
finish
