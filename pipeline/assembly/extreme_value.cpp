#include "pipeline/assembly/extreme_value.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace takt::pipeline {
namespace {

constexpr std::size_t kLeastTimes = 500;
constexpr double kThreshold = 0.9;
constexpr int kLags = 10;

double mean_of(const std::vector<double>& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

// Kwiatkowski, Phillips, Schmidt and Shin (1992), level stationarity with a Bartlett window of 4 (n / 100)^(1/4) lags.
TailCheck stationarity(const std::vector<double>& x) {
  const std::size_t n = x.size();
  const double mean = mean_of(x);
  std::vector<double> residual(n);
  std::transform(x.begin(), x.end(), residual.begin(), [mean](double v) { return v - mean; });
  const auto lags = static_cast<std::size_t>(4 * std::pow(static_cast<double>(n) / 100, 0.25));
  double variance = 0;
  for (std::size_t lag = 0; lag <= lags; ++lag) {
    double sum = 0;
    for (std::size_t i = lag; i < n; ++i) sum += residual[i] * residual[i - lag];
    const double weight = lag == 0 ? 1 : 2 * (1 - static_cast<double>(lag) / static_cast<double>(lags + 1));
    variance += weight * sum / static_cast<double>(n);
  }
  double partial = 0, squares = 0;
  for (const double r : residual) {
    partial += r;
    squares += partial * partial;
  }
  const double statistic = variance > 0 ? squares / (static_cast<double>(n) * static_cast<double>(n) * variance) : 1e9;
  return {"stationarity (KPSS)", statistic, 0.739};  // 1 %
}

// Ljung and Box (1978) over ten lags.
TailCheck independence(const std::vector<double>& x) {
  const auto n = static_cast<double>(x.size());
  const double mean = mean_of(x);
  double power = 0;
  for (const double v : x) power += (v - mean) * (v - mean);
  double statistic = 0;
  for (std::size_t lag = 1; lag <= kLags; ++lag) {
    double sum = 0;
    for (std::size_t i = lag; i < x.size(); ++i) sum += (x[i] - mean) * (x[i - lag] - mean);
    const double correlation = power > 0 ? sum / power : 1;
    statistic += correlation * correlation / (n - static_cast<double>(lag));
  }
  return {"independence (Ljung-Box)", statistic * n * (n + 2), 23.209};  // chi squared of 10, 1 %
}

// Kolmogorov and Smirnov: the first half against the second.
TailCheck identical(const std::vector<double>& x) {
  const auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::vector<double> a(x.begin(), middle), b(middle, x.end());
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  double distance = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const double v = std::min(a[i], b[j]);
    while (i < a.size() && a[i] <= v) ++i;
    while (j < b.size() && b[j] <= v) ++j;
    distance = std::max(distance, std::abs(static_cast<double>(i) / static_cast<double>(a.size()) -
                                           static_cast<double>(j) / static_cast<double>(b.size())));
  }
  const auto n = static_cast<double>(a.size()), m = static_cast<double>(b.size());
  return {"identical distribution (Kolmogorov-Smirnov)", distance * std::sqrt(n * m / (n + m)), 1.628};  // 1 %
}

struct Pareto {
  double scale = 0, shape = 0;
};

// Probability-weighted moments (Hosking and Wallis 1987) of ascending excesses.
Pareto fit(const std::vector<double>& excess) {
  const auto n = static_cast<double>(excess.size());
  double first = 0, weighted = 0;
  for (std::size_t i = 0; i < excess.size(); ++i) {
    first += excess[i] / n;
    weighted += excess[i] / n * (1 - (static_cast<double>(i) + 0.65) / n);
  }
  const double below = first - 2 * weighted;
  if (below <= 0) return {};
  return {2 * first * weighted / below, 2 - first / below};
}

double distribution_of(const Pareto& pareto, double x) {
  if (std::abs(pareto.shape) < 1e-9) return 1 - std::exp(-x / pareto.scale);
  const double base = 1 + pareto.shape * x / pareto.scale;
  return base <= 0 ? 1 : 1 - std::pow(base, -1 / pareto.shape);
}

double quantile_of(const Pareto& pareto, double exceeded) {
  if (std::abs(pareto.shape) < 1e-9) return -pareto.scale * std::log(exceeded);
  return pareto.scale / pareto.shape * (std::pow(exceeded, -pareto.shape) - 1);
}

// Cramer and von Mises of ascending excesses.
double misfit(const std::vector<double>& excess, const Pareto& pareto) {
  const auto n = static_cast<double>(excess.size());
  double sum = 1 / (12 * n);
  for (std::size_t i = 0; i < excess.size(); ++i) {
    const double planned = (2 * static_cast<double>(i) + 1) / (2 * n);
    const double d = distribution_of(pareto, excess[i]) - planned;
    sum += d * d;
  }
  return sum;
}

// The critical value of the misfit with fitted parameters is that of samples drawn from the fit (parametric bootstrap):
// the 190th of 200, 5 %.
TailCheck goodness(const std::vector<double>& excess, const Pareto& pareto) {
  constexpr int kDraws = 200;
  std::uint64_t state = 0x9E3779B97F4A7C15ULL;
  const auto uniform = [&state] {  // splitmix64
    std::uint64_t z = state += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return (static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
  };
  std::vector<double> statistics, drawn(excess.size());
  for (int draw = 0; draw < kDraws; ++draw) {
    for (double& x : drawn) x = quantile_of(pareto, uniform());
    std::sort(drawn.begin(), drawn.end());
    const Pareto refit = fit(drawn);
    if (refit.scale > 0) statistics.push_back(misfit(drawn, refit));
  }
  std::sort(statistics.begin(), statistics.end());
  const std::size_t rank = statistics.size() * 95 / 100;
  return {"goodness of fit (Cramer-von Mises, bootstrap)", misfit(excess, pareto),
          statistics.empty() ? 0 : statistics[std::min(rank, statistics.size() - 1)]};
}

}  // namespace

TailEstimate estimate_tail(const std::vector<Duration>& times) {
  TailEstimate out;
  if (times.size() < kLeastTimes) {
    out.refused = std::to_string(times.size()) + " times are too few, " + std::to_string(kLeastTimes) + " are needed";
    return out;
  }
  std::vector<double> x(times.size());
  std::transform(times.begin(), times.end(), x.begin(), [](Duration d) { return static_cast<double>(d.ns); });
  std::vector<double> sorted = x;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.front() == sorted.back()) {
    out.refused = "all times are equal";
    return out;
  }
  const double threshold = sorted[static_cast<std::size_t>(kThreshold * static_cast<double>(sorted.size()))];
  std::vector<double> excess;
  for (const double v : sorted) {
    if (v > threshold) excess.push_back(v - threshold);
  }
  out.threshold = {static_cast<std::int64_t>(threshold)};
  out.checks = {stationarity(x), independence(x), identical(x)};
  const Pareto pareto = excess.size() >= 30 ? fit(excess) : Pareto{};
  if (pareto.scale > 0) out.checks.push_back(goodness(excess, pareto));
  for (const TailCheck& check : out.checks) {
    if (!check.passed()) out.refused += (out.refused.empty() ? "" : ", ") + check.name;
  }
  if (!out.refused.empty()) {
    out.refused = "the data do not bear it: " + out.refused;
  } else if (pareto.scale <= 0) {
    out.refused = "too few times lie above the threshold";
  } else if (pareto.shape >= 0.5) {
    out.refused = "the tail is too heavy for an estimate (shape 0.5 or more)";
  }
  if (!out.refused.empty()) return out;
  out.scale_ns = pareto.scale;
  out.shape = pareto.shape;
  const double share = static_cast<double>(excess.size()) / static_cast<double>(x.size());
  const auto level = [&](double once_in) {
    return Duration{static_cast<std::int64_t>(threshold + quantile_of(pareto, 1 / (once_in * share)))};
  };
  out.once_in_million = level(1e6);
  out.once_in_billion = level(1e9);
  return out;
}

}  // namespace takt::pipeline
