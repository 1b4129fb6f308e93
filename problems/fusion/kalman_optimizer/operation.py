"""Kalman-filter step by blocks: one scalar summed over ranks, all new weights on all ranks."""
import torch
import torch.distributed as dist

FORGET = 63 / 64


def operation(gradient, covariance, weight, error, weights, new_covariance) -> None:
    """gradient, weight: [blocks, n]; covariance: [blocks, n, n]; weights: [world, blocks, n]; f64."""
    n = gradient.shape[1]
    covariance = covariance + 4 * n * torch.eye(n, device="cuda", dtype=torch.float64)
    gain = torch.bmm(covariance, gradient.unsqueeze(-1)).squeeze(-1)
    total = FORGET * gradient.shape[0] + (gradient * gain).sum()
    dist.all_reduce(total, op=dist.ReduceOp.SUM)
    less = torch.einsum("bi,bj->bij", gain, gain) / total
    torch.div(covariance - less, FORGET, out=new_covariance)
    dist.all_gather_into_tensor(weights.view(-1), (weight + error / total * gain).view(-1))


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (64, 128):
        gradient, weight = (torch.randint(0, 4, (2, n), device="cuda").double() for _ in range(2))
        covariance = torch.randint(0, 8, (2, n, n), device="cuda").double()
        weights = torch.empty(dist.get_world_size(), 2, n, device="cuda", dtype=torch.float64)
        error = torch.full((1,), 0.5, device="cuda", dtype=torch.float64)
        operation(gradient, covariance, weight, error, weights, torch.empty_like(covariance))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
