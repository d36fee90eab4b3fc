#include "pipeline/report/style.h"

namespace takt::pipeline {

// Quiet colours: only the verdict, broken bounds and warnings are loud. Stage colours keep the same order of lightness
// in print. Every text colour has a contrast of at least 4.5 : 1 on its background in both themes.
std::string_view report_style() {
  return R"css(
:root{color-scheme:light dark;
--page:#f4f5f7;--card:#fff;--ink:#1c2530;--muted:#566270;--line:#dfe3e8;--soft:#eef0f3;--accent:#2c5a8c;
--pass:#17703f;--passbg:#e4f2ea;--fail:#b3261e;--failbg:#fbe9e7;--warn:#855a00;--warnbg:#fbf1da;
--s0:#5b8dbf;--s1:#d0925a;--s2:#6ba57a;--s3:#9a7fbb;--s4:#c26f84;--s5:#5fa8a8;--s6:#a89a4e;--s7:#8a8f98;--onstage:#10161d;
--truth:#17703f;--track:#c2571a;--detection:#2c5a8c}
@media (prefers-color-scheme:dark){:root{
--page:#10141a;--card:#181e26;--ink:#e3e8ee;--muted:#98a4b2;--line:#2c3541;--soft:#212934;--accent:#7fb0e6;
--pass:#56c489;--passbg:#15301f;--fail:#ff8a80;--failbg:#3a1a18;--warn:#e5b65a;--warnbg:#33270f;
--s0:#6f9fd0;--s1:#d9a06c;--s2:#7cb58a;--s3:#ab92ca;--s4:#cf8496;--s5:#72b6b6;--s6:#b8ab63;--s7:#9aa0a9;--onstage:#0c1116;
--truth:#56c489;--track:#f0985a;--detection:#7fb0e6}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main,header,footer{max-width:1200px;margin:0 auto;padding:0 20px}
header{padding-top:26px}
h1{font-size:22px;line-height:1.25;margin:0;letter-spacing:-.01em}
h2{font-size:17px;margin:0 0 4px}
h3{font-size:14px;margin:18px 0 6px}
p{margin:0 0 10px}
a{color:var(--accent)}
code,pre{font-family:ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;font-size:12.5px}
pre{margin:6px 0 0;padding:9px 11px;background:var(--soft);border-radius:6px;white-space:pre-wrap;overflow-wrap:anywhere}
pre span{display:inline-block;max-width:100%}code:not(.hash){white-space:nowrap}
.muted{color:var(--muted)}.small{font-size:13px}
.sub{color:var(--muted);margin:4px 0 0}
nav{margin:14px 0 0;font-size:13px;line-height:1.9}
nav a{margin-right:14px;white-space:nowrap;text-decoration:none}
nav a:hover{text-decoration:underline}
section,.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:18px 20px;margin:16px 0}
section>p.lead{color:var(--muted);max-width:112ch}
.verdict{display:flex;gap:18px;align-items:flex-start;border-left:6px solid var(--muted)}
.verdict.pass{border-left-color:var(--pass)}.verdict.fail{border-left-color:var(--fail)}.verdict.open{border-left-color:var(--warn)}
.badge{display:inline-block;font-weight:700;font-size:20px;padding:6px 14px;border-radius:8px;white-space:nowrap}
.pass .badge{background:var(--passbg);color:var(--pass)}.fail .badge{background:var(--failbg);color:var(--fail)}
.open .badge{background:var(--warnbg);color:var(--warn)}
.answer{font-size:17px;margin:0 0 6px}
.verdict ul,.card ul{margin:8px 0 0;padding-left:18px}
ul.figures.figures{display:flex;flex-wrap:wrap;gap:6px 28px;margin:10px 0 4px;padding:0;list-style:none}
.figures b{font-size:18px;font-variant-numeric:tabular-nums;display:block;line-height:1.2}
.figures span{color:var(--muted);font-size:12.5px}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));gap:16px;margin:16px 0}
.cards .card{margin:0}.cards.columns>div{display:flex;flex-direction:column;gap:16px;min-width:0}
.caption{color:var(--muted);margin:12px 0 -2px}
.big{font-size:26px;font-weight:650;letter-spacing:-.01em;line-height:1.2;font-variant-numeric:tabular-nums}
.tag{display:inline-block;font-size:12px;padding:1px 7px;border-radius:9px;background:var(--soft);color:var(--muted);white-space:nowrap}
.tag.ok{background:var(--passbg);color:var(--pass)}.tag.bad{background:var(--failbg);color:var(--fail)}
.tag.open{background:var(--warnbg);color:var(--warn)}
.warning{background:var(--warnbg);color:var(--warn);padding:6px 10px;border-radius:6px;margin:6px 0;font-size:13.5px}
.scroll{overflow-x:auto;margin:8px 0 0}
table{border-collapse:collapse;width:100%;font-size:13.5px}
th,td{text-align:left;padding:6px 12px 6px 0;border-bottom:1px solid var(--line);vertical-align:top;font-weight:400}
tbody tr:last-child>*{border-bottom:0}
thead th{color:var(--muted);font-size:12px;border-bottom:1px solid var(--line);vertical-align:bottom;white-space:nowrap}
tbody th{font-weight:600}
.n+:not(.n){padding-left:14px}.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.hash{overflow-wrap:anywhere;word-break:break-all}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,255px),1fr));gap:14px 22px;margin-top:10px}
.grid.wide{grid-template-columns:repeat(auto-fit,minmax(min(100%,470px),1fr))}
.pair{display:grid;grid-template-columns:minmax(0,3fr) minmax(0,2fr);gap:14px 22px;margin-top:6px}
figure{margin:0;min-width:0}
figcaption{font-size:13px;color:var(--muted);margin:0 0 4px}
figcaption b{color:var(--ink)}
svg{display:block;max-width:100%;height:auto}
svg.chart{width:100%}
svg.bar{width:220px;height:27px;margin:-4px 0}
.wide-drawing{overflow-x:auto;margin:8px 0 4px}
.wide-drawing svg.gantt{width:100%;min-width:760px}
.narrow{display:none}.narrow svg.gantt{width:100%}
svg text{font-size:11px;fill:var(--ink);font-family:inherit}
svg .axis{fill:var(--muted);font-size:11px}
svg .lane{font-size:11.5px}svg .strong{font-weight:600}
svg .grid,svg .axis-line{stroke:var(--line);stroke-width:1}
svg .track{fill:var(--soft)}
svg .s0{--c:var(--s0)}svg .s1{--c:var(--s1)}svg .s2{--c:var(--s2)}svg .s3{--c:var(--s3)}
svg .s4{--c:var(--s4)}svg .s5{--c:var(--s5)}svg .s6{--c:var(--s6)}svg .s7{--c:var(--s7)}
svg .fill{fill:var(--c)}svg .soft{opacity:.45}
svg .sensor{fill:var(--muted);opacity:.55}svg .wait{fill:var(--soft);stroke:var(--line)}
svg .slot{fill:var(--c);fill-opacity:.22;stroke:var(--c);stroke-width:1}
svg .live{fill:none;stroke:var(--ink);stroke-width:1.6}
svg .run{fill:var(--c)}svg .run.bad{stroke:var(--fail);stroke-width:2}
svg .lost{stroke:var(--warn);stroke-width:1.6}svg .lost.violated{stroke:var(--fail)}
svg .absent{fill:none;stroke:var(--fail);stroke-width:1.2;stroke-dasharray:4 3}
svg .run-label{fill:var(--onstage);font-size:10.5px}svg .planned-label{font-size:10px}svg .bad-label{fill:var(--fail);font-size:10.5px}
svg .hold{stroke:var(--muted);stroke-width:1;stroke-dasharray:2 2}
svg .publish{stroke:var(--ink);stroke-width:1.5}
svg .flight{fill:var(--muted);opacity:.5}svg .arrived{fill:var(--ink)}
svg .bound{stroke:var(--fail);stroke-width:1.3;stroke-dasharray:5 3}svg .bound-label{fill:var(--fail);font-size:11px}
svg .bound-mark{fill:var(--fail)}svg .limit-mark{fill:var(--ink)}
svg .published{fill:var(--accent);opacity:.45}svg .completed{fill:var(--accent)}
svg .over{fill:var(--fail)}svg .beyond{fill:var(--warn)}
svg .dot{fill:var(--accent)}svg .dot.void{fill:none;stroke:var(--warn);stroke-width:1.4}
svg .dot.violated{fill:var(--fail)}svg .dot.fill{fill:var(--muted);opacity:.6}
.key{display:inline-block;width:11px;height:11px;border-radius:2px;margin:0 5px 0 0;vertical-align:-1px}
.key.letter{width:15px;height:15px;text-align:center;font-weight:600;font-style:normal;font-size:10px;line-height:15px;color:var(--onstage);vertical-align:0}
.legend{font-size:12.5px;color:var(--muted);margin:6px 0 12px;line-height:1.9}.legend span{margin-right:16px;white-space:nowrap}
.pool{height:14px;background:var(--soft);border-radius:3px;overflow:hidden;min-width:6px}
.pool i{display:block;height:100%;background:var(--accent)}
svg.scene{width:100%;max-width:760px;background:var(--soft);border-radius:6px}
svg .truth{fill:none;stroke:var(--truth);stroke-width:.22}svg .track-box{fill:var(--track);fill-opacity:.35;stroke:var(--track);stroke-width:.16}
svg .points{fill:none;stroke:var(--muted);stroke-width:.16;stroke-linecap:round;opacity:.55}
svg .ego{fill:var(--ink);opacity:.75}svg .arrow{stroke:var(--track);stroke-width:.18}
svg .ring{fill:none;stroke:var(--line);stroke-width:.12}svg .ring-label{fill:var(--muted);font-size:1.5px}
svg .id{fill:var(--ink);font-size:1.45px}
svg .box3{fill:none;stroke:#ff8c42;stroke-width:calc(1.6*var(--u))}svg .box2{fill:none;stroke:#7cc4ff;stroke-width:calc(1.7*var(--u));stroke-dasharray:calc(4*var(--u)) calc(2.5*var(--u))}
svg .tag-text{fill:#fff;font-size:calc(11*var(--u));paint-order:stroke;stroke:#000;stroke-width:calc(2.6*var(--u))}
dl{display:grid;grid-template-columns:minmax(120px,220px) 1fr;gap:4px 18px;margin:8px 0 0;font-size:13.5px}
dt{font-weight:600}dd{margin:0;color:var(--muted);overflow-wrap:anywhere}
summary{cursor:pointer;color:var(--accent);font-size:13.5px}
footer{color:var(--muted);font-size:12.5px;padding-bottom:40px}
@media (max-width:640px){
 main,header,footer{padding:0 12px}header{padding-top:16px}
 section,.card{padding:14px 14px;border-radius:8px}
 .verdict{flex-direction:column;gap:10px}
 thead{position:absolute;clip-path:inset(50%);height:1px;width:1px;overflow:hidden}
 table,tbody,tr,th,td{display:block}
 tbody tr{padding:8px 0;border-bottom:1px solid var(--line)}tbody tr:last-child{border-bottom:0}
 tbody th,td{border:0;padding:1px 0;text-align:left!important;white-space:normal!important;overflow-wrap:anywhere}
 td{display:flex;gap:10px;justify-content:space-between}
 td,th{padding-left:0!important}td::before{content:attr(data-label);color:var(--muted);flex:0 0 40%}td>span{text-align:right;min-width:0;flex:1}
 td>span:empty{display:none}
 .roomy{display:none}.narrow{display:block}
 .pair{grid-template-columns:minmax(0,1fr)}svg.bar{width:100%}dl{grid-template-columns:1fr}dd{margin-bottom:6px}}
@media print{:root{color-scheme:light}body{background:#fff;font-size:11px}main,header,footer{max-width:none;padding:0}
 section,.card{break-inside:avoid;border-color:#bbb;margin:8px 0;padding:10px}nav{display:none}
 .wide-drawing svg.gantt{min-width:0}}
)css";
}

}  // namespace takt::pipeline
