"""One step of a two-layer network whose weights, gradients and moments are sharded over all ranks."""
import torch
import torch.distributed as dist


def gathered(shard: torch.Tensor) -> torch.Tensor:
    whole = torch.empty(dist.get_world_size() * shard.numel(), device=shard.device)
    dist.all_gather_into_tensor(whole, shard)
    return whole[:8192].view(2, 64, 64)


def operation(x, target, param, m, v, new_param, new_m, new_v) -> None:
    """x, target: [batches, 64, 64] halves, by feature and sample; all others: [shard] floats."""
    shard, rank = param.numel(), dist.get_rank()
    first, second = gathered(param)
    x, target = (tensor.float() for tensor in (x, target))
    z = first @ x
    h = z.relu()
    e = (second @ h - target).sign()
    d = (second.t() @ e) * (z > 0)
    grad = torch.zeros(dist.get_world_size() * shard, device=param.device)
    grad[:4096] = torch.einsum("bfs,bks->fk", d, x).flatten()
    grad[4096:8192] = torch.einsum("bos,bfs->of", e, h).flatten()
    mine = torch.empty_like(param)
    dist.reduce_scatter_tensor(mine, grad, op=dist.ReduceOp.SUM)
    own = slice(0, max(0, min(shard, 8192 - rank * shard)))
    new_m[own] = (0.875 * m + 0.125 * mine)[own]
    new_v[own] = (0.984375 * v.abs() + 0.015625 * mine.square())[own]
    q = new_m[own] / (new_v[own].sqrt() + 2**-10)
    new_param[own] = param[own] - 0.125 * (q + 0.03125 * param[own])


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    shard = 8 * -(-1024 // dist.get_world_size())
    for batches in (1, 2):
        x, target = torch.randint(-1, 2, (2, batches, 64, 64), device="cuda").half()
        state = torch.randint(-1, 2, (3, shard), device="cuda").float()
        operation(x, target, *state, *torch.empty_like(state))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
